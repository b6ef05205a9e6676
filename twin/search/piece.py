"""`Piece`: which requests of a workload a run meets."""

from dataclasses import dataclass
from typing import Literal

Part = Literal["search", "held_out", "all"]
"""Of a trace: what trials see, what only the winner meets, and both."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a workload; equal ones hold the same requests at the same times.

    Attributes:
        part: of the workload.
        seed: of all that is random; None: the scenario's.
        share: only so much of the part, in (0, 1].
        start: share of the part that is passed over before; of traffic that is made up it changes
            nothing.
    """

    part: Part = "search"
    seed: int | None = None
    share: float = 1.0
    start: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.share <= 1 and self.start >= 0 and self.start + self.share <= 1 + 1e-9):
            raise ValueError(f"share {self.share} from {self.start} on is not in (0, 1]")


SEARCH = Piece()
"""All that trials see."""

HELD_OUT = Piece("held_out")
"""All that only the winner meets."""
