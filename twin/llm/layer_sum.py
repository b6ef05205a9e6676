"""`LayerSum`: the seconds of one pass over measured layers."""

from dataclasses import dataclass

from hwmodels.ops import Source
from twin.llm.op_sum import BOUNDS, SOURCES
from twin.llm.step_time import StepTime

_INTERPOLATED = SOURCES.index(Source.INTERPOLATED)


@dataclass(slots=True)
class LayerSum:
    """Seconds of a pass so far, by what bounds them and how they were obtained."""

    by_bound: list[float]
    by_source: list[float]

    @classmethod
    def empty(cls) -> "LayerSum":
        """Return nothing yet."""
        return cls([0.0] * len(BOUNDS), [0.0] * len(SOURCES))

    def put(self, seconds: float, bound: int, source: int = _INTERPOLATED) -> None:
        """Add seconds."""
        self.by_bound[bound] += seconds
        self.by_source[source] += seconds

    def step_time(self) -> StepTime:
        """Return the whole."""
        by, source = self.by_bound, self.by_source
        return StepTime(
            sum(by),
            by.index(max(by)),
            (by[0], by[1], by[2], by[3]),
            (source[0], source[1], source[2], source[3]),
        )
