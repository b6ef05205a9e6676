"""Passes of data-parallel ranks that share the experts, priced operation by operation."""

from collections.abc import Sequence
from dataclasses import replace

from hwmodels.ops import Bound, Collective, ExpertGemm, Source
from twin.llm.lowering import body_ops
from twin.llm.op_sum import BOUNDS, SOURCES
from twin.llm.step_time import StepTime, StepTimer
from twin.step import BatchShape

_BF16_BYTES = 2
_DUMMY = BatchShape((), 1, 1, 1, 0, 1)
_LINK = BOUNDS.index(Bound.LINK)


class OpsGroupTimer:
    """Times a pass of ranks in lockstep with the operations of one of them.

    Every rank prices its own batch; the experts see the tokens of all ranks instead of its own,
    after an all-gather and before a reduce-scatter in each layer (vLLM's
    `allgather_reducescatter` backend). The slowest rank decides for all.

    Args:
        timer: of one rank.
        dp: data-parallel ranks.
        ep: GPUs that hold whole experts: dp × tp, or 1 if each holds a slice of all.
    """

    def __init__(self, timer: StepTimer, dp: int, ep: int) -> None:
        self._timer, self._dp, self._ep = timer, dp, ep
        self._deltas: dict[tuple[int, int], tuple[float, int]] = {}

    def times(self, shapes: Sequence[BatchShape | None]) -> list[StepTime]:
        """See `twin.engine.lockstep.GroupTimer`."""
        filled = [_DUMMY if shape is None else shape for shape in shapes]
        gathered = sum(shape.num_tokens for shape in filled)
        alone = [self._timer.time(shape) for shape in filled]
        exchange_s, source = self._exchange(gathered)
        found = []
        for time, shape in zip(alone, filled, strict=True):
            delta_s, bound = self._experts_beyond_own(shape.num_tokens, gathered)
            found.append(_with(_with(time, delta_s, bound, source), exchange_s, _LINK, source))
        slowest = max(found, key=lambda time: time.seconds)
        return [slowest] * len(found)

    def _experts_beyond_own(self, own: int, gathered: int) -> tuple[float, int]:
        """Return (seconds, bound) of the experts for all tokens, less those of the own tokens."""
        found = self._deltas.get((own, gathered))
        if found is None:
            timer, seconds, bound = self._timer, 0.0, 0
            ops = body_ops(timer.arch, timer.precision, timer.tp, own, timer.ep)
            for op in ops:
                if isinstance(op, ExpertGemm):
                    cost = timer.cost_model.cost(self._shared(op, gathered))
                    seconds += cost.seconds - timer.cost_model.cost(op).seconds
                    bound = BOUNDS.index(cost.bound)
            found = self._deltas[own, gathered] = seconds, bound
        return found

    def _shared(self, op: ExpertGemm, gathered: int) -> ExpertGemm:
        """The same products for all ranks' tokens, with this rank's experts or slices."""
        arch, ranks = self._timer.arch, self._dp * self._timer.tp
        width = arch.moe.expert_intermediate if arch.moe else 0
        local = op.num_experts
        if self._ep > 1:
            local //= ranks
        else:
            width = -(-width // ranks)
        return replace(
            op,
            tokens=gathered,
            local_experts=local,
            intermediate=width,
            gated_n=2 * width if arch.gated_mlp else width,
        )

    def _exchange(self, gathered: int) -> tuple[float, int]:
        arch = self._timer.arch
        layers = arch.moe.num_moe_layers if arch.moe else 0
        num_bytes = float(gathered * arch.hidden_size * _BF16_BYTES)
        seconds, source = 0.0, SOURCES.index(Source.PHYSICS)
        for kind in ("all_gather", "reduce_scatter"):
            cost = self._timer.cost_model.cost(Collective(kind, num_bytes, self._dp, repeat=layers))
            seconds, source = seconds + cost.seconds, SOURCES.index(cost.source)
        return seconds, source


def _with(time: StepTime, seconds: float, bound: int, source: int) -> StepTime:
    """Return a step that takes longer by `seconds`."""
    by_bound, by_source = list(time.by_bound), list(time.by_source)
    by_bound[bound] += seconds
    by_source[source] += seconds
    b, s = by_bound, by_source
    return StepTime(
        time.seconds + seconds,
        b.index(max(b)),
        (b[0], b[1], b[2], b[3]),
        (s[0], s[1], s[2], s[3]),
    )
