"""What the choice of a configuration asks of a GPU."""

from dataclasses import dataclass
from functools import lru_cache

import torch


@dataclass(frozen=True, slots=True)
class Chip:
    """A GPU as a launcher sees it.

    Attributes:
        sms: multiprocessors.
        shared_bytes: shared memory of each.
        capability: compute capability, 90 for 9.0.
    """

    sms: int
    shared_bytes: int
    capability: int


@lru_cache(maxsize=16)
def chip_of(device: torch.device) -> Chip:
    """Return a GPU's; for the interpreter, which runs one program at a time, the least."""
    if device.type != "cuda":
        return Chip(1, 0, 80)
    found = torch.cuda.get_device_properties(device)
    return Chip(
        found.multi_processor_count,
        found.shared_memory_per_multiprocessor,
        10 * found.major + found.minor,
    )
