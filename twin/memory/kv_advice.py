"""The answer of `twin kv-dtype`: whether a KV dtype pays for a scenario, and from where on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from twin.engine.result import SimulationResult
from twin.errors import InputError
from twin.forecast_error import ForecastError, forecast_error
from twin.llm.kv_break_even import BreakEven, KvSide, kv_break_even
from twin.memory.kv_load import KvPressure, OwnLoad, own_load, pressure_of
from twin.memory.kv_steps import KvSteps, kv_steps
from twin.scenario import Scenario

CONTEXTS = (256, 1024, 4096, 8192, 16384, 32768, 65536, 131072)
BATCHES = (1, 4, 16, 64)

Verdict = Literal["for", "against"]
Sure = Literal["sure", "likely", "unsure"]


@dataclass(frozen=True, slots=True)
class Run:
    """A scenario, what it gave, and its figures as `summarise` gives them."""

    scenario: Scenario
    result: SimulationResult
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OwnRatios:
    """The dtype over 16 bits at the scenario's own load, and how far that may be off (P90)."""

    prefill: float
    step: float
    request: float
    step_noise: float
    request_noise: float


@dataclass(frozen=True, slots=True)
class KvAdvice:
    """Whether a KV dtype pays.

    Attributes:
        name, llm, gpu, kv_cache_dtype: what is judged.
        contexts, batches: of the table.
        step_ratios: decode step over that of 16-bit KV, by batch, then context.
        prefill_ratios: a prompt alone over that of 16-bit KV, by context.
        break_even: by batch, the contexts at which a decode step is faster; None: at none.
        request_break_even: the same for the GPU time of a request with this scenario's answers,
            prefill's loss included and nothing cached.
        capacity_ratio: KV tokens that fit over those with 16 bits.
        load, own: what the scenario does, and the ratios there.
        forecast: error of forecasts of such networks.
        measured: a table of this dtype prices decode attention.
        plain, other: how full the pools were in runs of both.
        verdict, sure, reasons: the advice.
    """

    name: str
    llm: str
    gpu: str
    kv_cache_dtype: str
    contexts: tuple[int, ...]
    batches: tuple[int, ...]
    step_ratios: tuple[tuple[float, ...], ...]
    prefill_ratios: tuple[float, ...]
    break_even: Mapping[int, BreakEven | None]
    request_break_even: Mapping[int, BreakEven | None]
    capacity_ratio: float
    load: OwnLoad
    own: OwnRatios
    forecast: ForecastError
    measured: bool
    plain: KvPressure
    other: KvPressure
    verdict: Verdict
    sure: Sure
    reasons: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data; break-evens by batch as text, as JSON has it."""
        found = asdict(self)
        for key in ("break_even", "request_break_even"):
            found[key] = {str(batch): stretch for batch, stretch in found[key].items()}
        for key, side in (("plain", self.plain), ("other", self.other)):
            found[key]["binds"] = side.binds
        return found


def advise(plain: Run, other: Run) -> KvAdvice:
    """Return whether the KV dtype of `other` pays over that of `plain`, 16 bits.

    Args:
        plain, other: runs of one scenario that differ in nothing but the KV dtype.

    Raises:
        InputError: nothing was decoded.
    """
    before, after = kv_steps(plain.scenario), kv_steps(other.scenario)
    sides, load = (before.side, after.side), own_load(plain.result)
    longest = min(plain.scenario.policy.max_model_len, max(CONTEXTS))
    contexts = (*(c for c in CONTEXTS if c < longest), longest)
    batches = tuple(sorted({*BATCHES, load.seqs}))
    own = _own(before, after, load)
    pressures = pressure_of(plain.figures), pressure_of(other.figures)
    forecast = forecast_error(experts=plain.scenario.arch.moe is not None)
    verdict, sure, reasons = _judged(own, forecast, *pressures)
    if sure == "sure" and not after.measured:
        sure = "likely"  # a price borrowed from another GPU or dtype carries no more
    return KvAdvice(
        name=plain.scenario.file.name,
        llm=plain.scenario.arch.name,
        gpu=plain.scenario.gpu.name,
        kv_cache_dtype=other.scenario.file.policy.kv_cache_dtype,
        contexts=contexts,
        batches=batches,
        step_ratios=tuple(tuple(_step(*sides, b, c) for c in contexts) for b in batches),
        prefill_ratios=tuple(_prefill(*sides, c) for c in contexts),
        break_even=kv_break_even(*sides, batches, longest),
        request_break_even=kv_break_even(*sides, batches, longest, load.output_tokens),
        capacity_ratio=_tokens(other.scenario) / _tokens(plain.scenario),
        load=load,
        own=own,
        forecast=forecast,
        measured=after.measured,
        plain=pressures[0],
        other=pressures[1],
        verdict=verdict,
        sure=sure,
        reasons=reasons,
    )


def check_pools(scenario: Scenario, where: str) -> None:
    """Refuse a scenario whose pools name a dtype of their own, which both sides would have.

    Args:
        scenario: one of both sides.
        where: how errors name it.

    Raises:
        InputError: one of its pools does.
    """
    for pool in scenario.file.cluster.pools or ():
        if pool.policy is not None and "kv_cache_dtype" in pool.policy.model_fields_set:
            raise InputError(
                "a pool has a kv_cache_dtype of its own",
                where=f"{where}, cluster.pools",
                remedy="leave it out there: both sides would have it",
            )


def _step(before: KvSide, after: KvSide, seqs: int, context: int) -> float:
    return after.decode_s(seqs, context) / before.decode_s(seqs, context)


def _prefill(before: KvSide, after: KvSide, prompt_tokens: int, cached_tokens: int = 0) -> float:
    plain_s = before.prefill_s(prompt_tokens, cached_tokens)
    return after.prefill_s(prompt_tokens, cached_tokens) / plain_s


def _tokens(scenario: Scenario) -> int:
    return scenario.num_gpu_blocks * scenario.policy.block_size


def _own(before: KvSteps, after: KvSteps, load: OwnLoad) -> OwnRatios:
    seqs, context = load.seqs, load.context_tokens
    noise = after.noise(seqs, context)
    plain_s = before.side.decode_s(seqs, context)
    prompt = load.prompt_tokens, load.cached_tokens
    request = seqs, load.prompt_tokens, load.output_tokens, load.cached_tokens
    request_s = before.side.request_s(*request)
    decodes = load.output_tokens * plain_s / seqs / request_s
    return OwnRatios(
        prefill=_prefill(before.side, after.side, *prompt),
        step=after.side.decode_s(seqs, context) / plain_s,
        request=after.side.request_s(*request) / request_s,
        step_noise=noise,
        request_noise=noise * min(1.0, decodes),
    )


def _judged(
    own: OwnRatios, forecast: ForecastError, plain: KvPressure, other: KvPressure
) -> tuple[Verdict, Sure, tuple[str, ...]]:
    """The advice: capacity first, where KV is what lacks, then time above its noise."""
    gain = 1 - own.request
    told = f"a request takes {-gain:+.1%} GPU time, which may be off by {own.request_noise:.1%}"
    eased = _gains(plain, other, forecast) if plain.binds else ()
    if eased:
        backed = gain > own.request_noise or other.preemptions < plain.preemptions
        return "for", "sure" if backed else "likely", (_lack(plain), *eased, told)
    lacks = (f"{_lack(plain)}, yet more of it changes nothing",) if plain.binds else ()
    if gain > own.request_noise:
        sure: Sure = "sure" if gain > forecast.tpot_median else "likely"
        return "for", sure, (*lacks, told)
    if gain < -own.request_noise:
        return "against", "sure", (*lacks, told)
    reason = "no gain above that, and a dtype that loses digits has to earn its place"
    sure = "likely" if abs(gain) + own.request_noise < forecast.tpot_median else "unsure"
    return "against", sure, (*lacks, told, reason)


def _lack(plain: KvPressure) -> str:
    return (
        f"KV cache is what lacks: up to {plain.usage_max:.0%} of it used, {plain.preemptions:,} "
        f"preemptions, {plain.waiting_mean:.1f} requests waiting on average"
    )


def _gains(plain: KvPressure, other: KvPressure, forecast: ForecastError) -> tuple[str, ...]:
    """Return what the run with more KV did better by more than forecasts err."""
    found = []
    before, after = plain.output_tokens_per_s, other.output_tokens_per_s
    if before and after and after / before - 1 > forecast.tpot_median:
        found.append(f"with the dtype {after:,.0f} output tokens/s instead of {before:,.0f}")
    before, after = plain.ttft_p99_s, other.ttft_p99_s
    if before and after and 1 - after / before > forecast.ttft_median:
        found.append(f"with the dtype P99 TTFT is {after:.3g} s instead of {before:.3g} s")
    return tuple(found)
