"""What steps of a scenario cost under its KV dtype, and how far that may be off."""

import math
from dataclasses import dataclass

from hwmodels.efficiency import FP8_KV_RATIO
from hwmodels.interpolate import log_interpolate
from hwmodels.measured.model import MeasuredCostModel
from hwmodels.ops import CostModel
from twin.engine.engines import base_cost_model, engine_costs, step_timer
from twin.llm.attention_layers import AttentionLayers
from twin.llm.kv_break_even import KvSide
from twin.scenario import Scenario
from twin.step import BatchShape

# Half of P10-P90 of what FP8 KV's decode attention takes over bf16's, of H100's kernels behind
# `FP8_KV_RATIO` (heads of 128) and at the same sizes: how far a kernel may be from the median that
# stands in.
FP8_KV_SPREAD = tuple(
    (size, spread)
    for (size, _), spread in zip(FP8_KV_RATIO, (0.04, 0.065, 0.20, 0.19, 0.125), strict=True)
)


@dataclass(frozen=True, slots=True)
class KvSteps:
    """A scenario's steps, priced operation by operation.

    Measured layers are left aside: they are of 16-bit KV alone, and two dtypes are only
    comparable if the same thing prices both.
    """

    scenario: Scenario
    side: KvSide
    cost_model: CostModel

    def attention_share(self, seqs: int, context: int) -> float:
        """Return the share of a decode step that is attention."""
        ops = self._layers().decode(seqs, seqs * context, context)
        attention_s = sum(self.cost_model.cost(op).seconds for op in ops)
        return min(1.0, attention_s / self.side.decode_s(seqs, context))

    @property
    def measured(self) -> bool:
        """Whether decode attention over this dtype stands in a table, not another's in its place.

        Shapes beyond the table are those of the dtype all the same.
        """
        model, layers = base_cost_model(self.scenario), self._layers()
        qk_dim, v_dim = layers.decode_dims
        head = str(qk_dim) if qk_dim == v_dim else "mla"
        wanted = f"decode.{head}.{layers.kv_dtype}"
        return isinstance(model, MeasuredCostModel) and wanted in model.profile.tables

    def noise(self, seqs: int, context: int) -> float:
        """Return how far a step over the same with 16-bit KV may be off, relative (P90).

        Products cancel in such a ratio; what is left is attention. Its error is that of held-out
        kernels of both dtypes, or, where no table has the dtype, the spread of the kernels whose
        median stands in.
        """
        held_out = _held_out(base_cost_model(self.scenario))
        if held_out is None or not self.measured:
            scenario = self.scenario
            plain = AttentionLayers(scenario.arch, "bf16", scenario.file.parallelism.tp)
            size = float(seqs * context) * plain.kv_bytes_per_token
            error = log_interpolate(size, FP8_KV_SPREAD)
        else:
            error = held_out
        return error * self.attention_share(seqs, context)

    def _layers(self) -> AttentionLayers:
        scenario = self.scenario
        return AttentionLayers(
            scenario.arch, scenario.precision.kv_dtype, scenario.file.parallelism.tp
        )


def kv_steps(scenario: Scenario) -> KvSteps:
    """Return what a scenario's steps cost."""
    costs = engine_costs(scenario)
    timer = step_timer(scenario, costs)
    budget = scenario.policy.max_num_batched_tokens
    known: dict[tuple[int, int], float] = {}

    def decode_s(seqs: int, context: int) -> float:
        return timer.time(BatchShape((), seqs, seqs * context, context, seqs)).seconds

    def prefill_s(prompt_tokens: int, cached_tokens: int = 0) -> float:
        prompt = prompt_tokens, min(cached_tokens, prompt_tokens - 1)
        seconds = known.get(prompt)
        if seconds is None:
            chunks = _chunks(prompt[1], prompt_tokens, budget)
            shapes = [
                BatchShape(((end - start, end),), 0, 0, 0, int(end == prompt_tokens))
                for start, end in chunks
            ]
            seconds = known[prompt] = sum(timer.time(shape).seconds for shape in shapes)
        return seconds

    return KvSteps(scenario, KvSide(decode_s, prefill_s), costs.cost_model)


def _chunks(start: int, end: int, budget: int) -> list[tuple[int, int]]:
    """Return (first, end) of the chunks that tokens of a prompt alone are computed in."""
    return [(first, min(first + budget, end)) for first in range(start, end, budget)]


def _held_out(model: CostModel) -> float | None:
    """Return the relative error (P90) of a ratio of two measured kernels; None: not judged."""
    if not isinstance(model, MeasuredCostModel):
        return None
    errors = [model.profile.held_out.get(name) for name in ("decode", "decode fp8")]
    known = [error.p90_pct / 100 for error in errors if error is not None]
    return math.hypot(*known) if len(known) == len(errors) else None
