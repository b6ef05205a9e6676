"""What a capacity scheduler answers."""

from dataclasses import dataclass, field
from typing import Protocol

from twin.scheduling.trtllm.active import ActiveRequest


@dataclass(slots=True)
class Selection:
    """The outcome of one capacity pass.

    Attributes:
        taken: requests that may run, in the order in which the micro-batch scheduler sees them.
        paused: requests that lose their blocks now.
    """

    taken: list[ActiveRequest]
    paused: list[ActiveRequest] = field(default_factory=list)


class CapacityScheduler(Protocol):
    """Built with the limits and the KV blocks; changes neither."""

    def select(self, active: list[ActiveRequest]) -> Selection:
        """Choose among the active requests, given in order of arrival."""
        ...

    def keeps_out(self, active: list[ActiveRequest]) -> bool:
        """Whether every context stays out for as long as all generations advance.

        That is, until a request joins, ends, or finds no block.
        """
        ...
