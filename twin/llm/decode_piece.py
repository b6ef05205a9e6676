"""`DecodePiece`: decode-only steps of one batch while their KV stays on one line."""

from dataclasses import dataclass
from functools import cached_property

from hwmodels.ops import Bound, Source
from twin.llm.op_sum import BOUNDS, SOURCES

LAUNCH = BOUNDS.index(Bound.LAUNCH)
PHYSICS = SOURCES.index(Source.PHYSICS)


@dataclass(frozen=True)
class DecodePiece:
    """What decode-only steps of one batch share as long as their KV stays on one line.

    With kv tokens of KV, up to `last_kv`: the GPU takes `base_s + slope_s * kv`, attention
    `attention_base_s + slope_s * kv` of it, launching `launch_base_s + launch_slope_s * kv`.

    Attributes:
        bound, source: of attention; the rest has the shares `by_bound` and `by_source`.
        launch_bound, launch_source: what waiting for launches counts as.
        first_kv: where the line begins.
    """

    base_s: float
    slope_s: float
    attention_base_s: float
    last_kv: int
    launch_base_s: float
    launch_slope_s: float
    bound: int
    source: int
    by_bound: tuple[float, ...]
    by_source: tuple[float, ...]
    first_kv: int
    launch_bound: int = LAUNCH
    launch_source: int = PHYSICS

    def short_s(self, kv: int) -> float:
        """Return by how much launching takes longer than the GPU; negative: it does not."""
        launched_s = self.launch_base_s + self.launch_slope_s * kv
        return launched_s - (self.base_s + self.slope_s * kv)

    def bound_at(self, kv: int) -> int:
        """Return what limits a step."""
        if self.short_s(kv) > 0:
            return self.launch_bound
        shares = list(self.by_bound)
        shares[self.bound] += self.attention_base_s + self.slope_s * kv
        return shares.index(max(shares))

    @cached_property
    def never_waits(self) -> bool:
        """Whether no step on the line waits for its launches (both lines are monotone)."""
        return self.short_s(self.first_kv) < 0 and self.short_s(self.last_kv) < 0

    @cached_property
    def only_bound(self) -> int | None:
        """What limits every step on the line; None: it changes."""
        first, last = self.bound_at(self.first_kv), self.bound_at(self.last_kv)
        return first if first == last else None
