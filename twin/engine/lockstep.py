"""What data-parallel ranks that step together share: meeting points, and the GPUs' common pace."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from twin.engine.clock import Clock, Event
from twin.llm.step_time import StepTime
from twin.step import BatchShape

if TYPE_CHECKING:
    from twin.engine.data_parallel import LockstepRank

T = TypeVar("T")


class GroupTimer(Protocol):
    """Tells how long one pass of all ranks takes."""

    def times(self, shapes: Sequence[BatchShape | None]) -> list[StepTime]:
        """Return each rank's duration from the common start; None is a rank's dummy pass."""
        ...


class Rendezvous(Generic[T]):
    """A point that all ranks must reach before any goes on; every one hears what all brought."""

    def __init__(self, clock: Clock, ranks: int) -> None:
        self._clock = clock
        self._brought: dict[int, T] = {}
        self._missing = ranks
        self._meeting = clock.event()

    def meet(self, rank: int, value: T) -> tuple[Event, list[T] | None]:
        """Return an event that fires once the last rank has come, with what all brought.

        The last to come gets these values at once, the others None.
        """
        self._brought[rank] = value
        self._missing -= 1
        meeting = self._meeting
        if self._missing:
            return meeting, None
        brought = [self._brought[rank] for rank in sorted(self._brought)]
        self._brought, self._missing = {}, len(brought)
        self._meeting = self._clock.event()
        meeting.succeed(brought)
        return meeting, brought

    def reset(self) -> None:
        """Forget who has come."""
        self._missing += len(self._brought)
        self._brought = {}
        self._meeting = self._clock.event()


class Lockstep:
    """What ranks that step together share: where they meet, and the GPUs' common pace."""

    def __init__(self, clock: Clock, ranks: int, timer: GroupTimer) -> None:
        self.launches: Rendezvous[BatchShape | None] = Rendezvous(clock, ranks)
        self.agreements: Rendezvous[bool] = Rendezvous(clock, ranks)
        self.members: list[LockstepRank] = []
        self.stepping = False
        self._timer = timer
        self._shapes: object = None
        self._times: list[StepTime] = []
        self._start_s = self._free_s = 0.0

    def wake(self) -> None:
        """A request came: ranks at rest start to step, all of them."""
        if not self.stepping:
            self.stepping = True
            for member in self.members:
                member.wake()

    def reset(self) -> None:
        """All ranks start anew."""
        self.launches.reset()
        self.agreements.reset()
        self.stepping = False
        self._shapes, self._free_s = None, 0.0

    def launch(
        self, shapes: Sequence[BatchShape | None], now_s: float
    ) -> tuple[float, list[StepTime]]:
        """Return (start, duration a rank) of the pass that all ranks have just launched."""
        if shapes is not self._shapes:
            self._shapes, self._times = shapes, self._timer.times(shapes)
            self._start_s = max(now_s, self._free_s)
            self._free_s = self._start_s + max(time.seconds for time in self._times)
        return self._start_s, self._times


class SharedGpus:
    """Ranks in lockstep are timed as a group."""

    stages = 1

    def reset(self) -> None:
        """See `Lockstep.reset`."""

    def run(self, shape: BatchShape, launched_s: float, call: int) -> tuple[float, float, StepTime]:
        """See `Lockstep.launch`."""
        raise NotImplementedError(f"a rank alone is not timed ({shape}, {launched_s}, {call})")
