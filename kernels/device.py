"""What probes need to know of a device before they plan."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device, as its driver describes it.

    Attributes:
        capability: compute capability, (9, 0) for Hopper.
        memory_bytes: all of it, in use or not.
        max_clock_hz: of the multiprocessors; 0 where it isn't known.
    """

    capability: tuple[int, int]
    num_sms: int
    l2_bytes: int
    memory_bytes: int
    max_clock_hz: float


_STAND_IN = DeviceFacts(
    capability=(8, 0), num_sms=2, l2_bytes=2**20, memory_bytes=2**28, max_clock_hz=0.0
)
"""For the interpreter: small, so that what is planned for it is small too. No real part."""


def device_facts(device: torch.device) -> DeviceFacts:
    """Return a GPU's facts; for a CPU a small stand-in, of which no figure may be published."""
    if device.type != "cuda":
        return _STAND_IN
    found = torch.cuda.get_device_properties(device)
    return DeviceFacts(
        capability=(found.major, found.minor),
        num_sms=found.multi_processor_count,
        l2_bytes=found.L2_cache_size,
        memory_bytes=found.total_memory,
        # kHz; PyTorch tells it from 2.4 on.
        max_clock_hz=1e3 * float(getattr(found, "clock_rate", 0)),
    )
