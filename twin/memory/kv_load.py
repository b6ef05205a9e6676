"""What a run says about its KV cache: how much decodes at once, and whether KV is what lacks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from twin.engine.result import SimulationResult
from twin.errors import InputError

FULL = 0.97
"""Share of a pool from which it counts as full: the rest is smaller than a prompt."""


@dataclass(frozen=True, slots=True)
class OwnLoad:
    """The step that a scenario mostly makes, and the requests it makes it for.

    Attributes:
        seqs: sequences that decode together, mean over the time of steps that decode.
        context_tokens: of such a sequence, mean over tokens generated.
        prompt_tokens, output_tokens: means over requests that generated anything.
        cached_tokens: of a prompt, found in the prefix cache.
    """

    seqs: int
    context_tokens: int
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int


def own_load(result: SimulationResult) -> OwnLoad:
    """Return what a run mostly did.

    Raises:
        InputError: it generated nothing, or kept no steps.
    """
    requests, steps = result.requests, result.steps
    answered = requests.output_tokens > 0
    decoding = steps.decode_tokens > 0
    if not answered.any():
        raise InputError(
            "no request was served", where="workload", remedy="see twin simulate for why"
        )
    if not decoding.any():
        raise InputError("nothing was decoded", where="workload", remedy="ask for longer answers")
    prompts, outputs = requests.prompt_tokens[answered], requests.output_tokens[answered]
    seqs = np.average(steps.decode_tokens[decoding], weights=steps.busy_s[decoding])
    contexts = np.average(prompts + outputs / 2, weights=outputs)
    return OwnLoad(
        max(1, round(float(seqs))),
        max(1, round(float(contexts))),
        max(1, round(float(prompts.mean()))),
        max(1, round(float(outputs.mean()))),
        round(float(requests.cached_tokens[answered].mean())),
    )


@dataclass(frozen=True, slots=True)
class KvPressure:
    """Of one run: how full the pool was and what it cost. Seconds; None: nobody was served.

    `slo_met` and `slo_attainment` (share of requests) are None where no SLO is stated.
    """

    usage_max: float
    preemptions: int
    waiting_mean: float
    ttft_p99_s: float | None
    tpot_p99_s: float | None
    output_tokens_per_s: float | None
    slo_met: bool | None = None
    slo_attainment: float | None = None

    @property
    def binds(self) -> bool:
        """Whether requests were preempted or waited while the pool was full."""
        return self.preemptions > 0 or (self.usage_max >= FULL and self.waiting_mean > 0)


def pressure_of(figures: Mapping[str, Any]) -> KvPressure:
    """Return the pressure in figures of a run, as `summarise` gives them."""
    return KvPressure(
        figures["kv_cache_usage"]["max"] or 0.0,
        figures["preemptions"],
        figures["waiting"]["mean"] or 0.0,
        figures["ttft_s"]["p99"],
        figures["tpot_s"]["p99"],
        figures["output_tokens_per_s"],
        figures["slo_met"],
        figures["slo_attainment"],
    )
