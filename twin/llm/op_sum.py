"""Seconds of operations, by what limits them and by how they were obtained."""

from collections.abc import Iterable

from hwmodels.ops import Bound, CostModel, Op, Source

BOUNDS: tuple[Bound, ...] = (Bound.COMPUTE, Bound.HBM, Bound.LINK, Bound.LAUNCH)
"""What limits a step, as results and reports tell it."""

SOURCES: tuple[Source, ...] = tuple(Source)

# Waiting for translations is waiting for memory: a step counts it as that.
_OP_BOUNDS = (*BOUNDS, Bound.TLB)
_PLACES = (0, 1, 2, 3, BOUNDS.index(Bound.HBM))


class OpSum:
    """Seconds and kernels of some operations, split by bound and by source."""

    __slots__ = ("by_bound", "by_source", "kernels", "seconds")

    def __init__(self) -> None:
        self.seconds, self.kernels = 0.0, 0
        self.by_bound, self.by_source = [0.0] * len(BOUNDS), [0.0] * len(SOURCES)

    def add(self, cost_model: CostModel, ops: Iterable[Op]) -> "OpSum":
        """Add operations; return the sum itself."""
        for op in ops:
            cost = cost_model.cost(op)
            self.kernels += cost.kernels
            # A search by identity is quicker than hashing an Enum member.
            bound = _PLACES[_OP_BOUNDS.index(cost.bound)]
            self.put(cost.seconds, bound, SOURCES.index(cost.source))
        return self

    def put(self, seconds: float, bound: int, source: int) -> None:
        """Add seconds of one bound and source."""
        self.seconds += seconds
        self.by_bound[bound] += seconds
        self.by_source[source] += seconds

    def merge(self, other: "OpSum") -> None:
        """Add another sum."""
        self.seconds += other.seconds
        self.kernels += other.kernels
        for index in range(4):
            self.by_bound[index] += other.by_bound[index]
            self.by_source[index] += other.by_source[index]

    def copy(self) -> "OpSum":
        """Return a sum of its own that is equal."""
        found = OpSum()
        found.merge(self)
        return found

    def between(self, other: "OpSum", share: float) -> "OpSum":
        """Return the sum that lies `share` of the way to another, with this one's kernels."""
        found = OpSum()
        found.kernels = self.kernels
        found.seconds = self.seconds + share * (other.seconds - self.seconds)
        pairs = zip(self.by_bound, other.by_bound, strict=True)
        found.by_bound = [a + share * (b - a) for a, b in pairs]
        pairs = zip(self.by_source, other.by_source, strict=True)
        found.by_source = [a + share * (b - a) for a, b in pairs]
        return found

    def largest(self) -> tuple[int, int]:
        """Return the bound and the source with most seconds."""
        by, source = self.by_bound, self.by_source
        return by.index(max(by)), source.index(max(source))
