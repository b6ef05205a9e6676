"""A step between its launch and the processing of its output."""

from dataclasses import dataclass

from hwmodels.host import HostCosts
from twin.step import BatchShape, StepPlan


@dataclass(slots=True)
class InFlight:
    """A step launched and not processed yet."""

    plan: StepPlan
    end_s: float
    empty: bool

    def out_s(self, host: HostCosts, now_s: float) -> float:
        """Return when its tokens leave the engine, if it is waited for from `now_s` on."""
        return host.out_s(now_s, self.end_s, len(self.plan.scheduled), empty=self.empty)


def batch_shape(plan: StepPlan) -> BatchShape:
    """Return the shape of a plan just scheduled (each `num_computed` is that after the step)."""
    prefill: list[tuple[int, int]] = []
    decode_seqs = decode_kv = decode_max = decode_min = 0
    for state, tokens in plan.scheduled:
        kv_tokens = state.num_computed
        if tokens == 1:
            decode_seqs += 1
            decode_kv += kv_tokens
            if kv_tokens > decode_max:
                decode_max = kv_tokens
            if kv_tokens < decode_min or decode_seqs == 1:
                decode_min = kv_tokens
        else:
            prefill.append((tokens, kv_tokens))
    return BatchShape(
        tuple(prefill), decode_seqs, decode_kv, decode_max, len(plan.samples), decode_min
    )
