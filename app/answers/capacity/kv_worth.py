"""Whether a KV dtype pays for a setup: two simulations, the advice, and how sure it is."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.answers.capacity.kv_dtypes import AUTO
from app.answers.forecast.certainty import certainty_of, error_between
from app.answers.setup import Setup
from twin.engine.run import quickest_engine, simulate
from twin.forecast_error import ForecastError
from twin.llm.kv_break_even import BreakEven
from twin.memory.kv_advice import KvAdvice, Run, advise, check_pools
from twin.report.kv_dtype import advice_lines
from twin.report.metrics import summarise
from twin.report.numbers import change, count, percent, seconds

Progress = Callable[[int, int | None], None]

DTYPE_KEY = "policy.kv_cache_dtype"
_SURE = {"sure": "and that is sure", "likely": "most likely", "unsure": "but that is not sure"}


@dataclass(frozen=True, slots=True)
class KvWorth:
    """What the page says of one dtype against 16 bits.

    Attributes:
        sentence: the answer to "is it worth it here, and how sure are we?".
        latencies: by figure, the columns of a table: 16 bits, the dtype, the change in words.
        error: where "within error" comes from, one sentence.
        lines: the advice as `twin kv-dtype` gives it, a sentence each.
        break_even: from which context on it is faster, a sentence each.
        steps: decode step over that of 16 bits by batch and context, columns of a table.
    """

    sentence: str
    latencies: dict[str, list[str]]
    error: str
    lines: tuple[str, ...]
    break_even: tuple[str, ...]
    steps: dict[str, list[str]]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data that `KvWorth(**data)` takes."""
        return asdict(self)


def kv_worth(setup: Setup, dtype: str, progress: Progress | None = None) -> KvWorth:
    """Simulate a setup with 16-bit KV and with a dtype, and judge it.

    Args:
        setup: what is asked, whatever KV dtype it has.
        dtype: a `kv_cache_dtype` of fewer bits.
        progress: called with (requests ended, expected in both or None).

    Raises:
        InputError: its parts do not go together, or nothing was decoded.
    """
    first = _run(setup, AUTO, _half(progress, 0))
    ended = first.figures["requests"]
    other = _run(setup, dtype, _half(progress, ended))
    found = advise(first, other)
    error, told = _error(first, other)
    return KvWorth(
        sentence=_sentence(found, first.figures, other.figures, error),
        latencies=_latencies(dtype, first.figures, other.figures, error),
        error=told,
        lines=tuple(advice_lines(found)),
        break_even=_break_even(found),
        steps=_steps(found),
    )


def _error(first: Run, other: Run) -> tuple[ForecastError | None, str]:
    """Return the error of the ratio of both forecasts, and where it comes from."""
    sure = certainty_of(first.scenario)
    if sure.ttft is None:
        return None, f"Error unknown: {sure.basis}."
    error = error_between(first.result.inputs, other.result.inputs, experts=sure.experts)
    return error, (
        f"Within error: closer than the P90 held-out error of a ratio of two forecasts, TTFT "
        f"±{percent(error.ttft_p90)}, the rest ±{percent(error.tpot_p90)}, n = {error.rows} "
        f"({error.basis}). Percentiles were not compared: means stand for them."
    )


def _half(progress: Progress | None, before: int) -> Progress | None:
    if progress is None:
        return None
    said = progress

    def tell(ended: int, expected: int | None) -> None:
        said(before + ended, None if expected is None else 2 * expected)

    return tell


def _run(setup: Setup, dtype: str, progress: Progress | None) -> Run:
    asked = replace(setup, changes={**setup.changes, DTYPE_KEY: dtype})
    scenario = asked.scenario()
    check_pools(scenario, asked.where)
    result = simulate(scenario, progress, engine=quickest_engine())
    return Run(scenario, result, summarise(result))


def _sentence(
    found: KvAdvice,
    plain: Mapping[str, Any],
    other: Mapping[str, Any],
    error: ForecastError | None,
) -> str:
    gain = change(100 * (found.own.request - 1))
    wrong = error.tpot_p90 if error else None
    time = f"{gain} GPU time a request (±{percent(found.own.request_noise)})"
    room = f"{change(100 * (found.capacity_ratio - 1))} KV tokens, which this load "
    room += "is short of" if found.plain.binds else "is not short of"
    itl = _changed(plain["itl_s"]["p99"], other["itl_s"]["p99"], wrong)
    # What decides comes first (`twin.memory.kv_advice`): capacity where it is short, else time.
    first, second = (room, time) if found.plain.binds else (time, room)
    name = found.kv_cache_dtype.upper() if "_" not in found.kv_cache_dtype else found.kv_cache_dtype
    return f"{name} KV: {_worth(found, error)}: {first}; {second}; P99 ITL {itl}."


def _worth(found: KvAdvice, error: ForecastError | None) -> str:
    """Return the answer in a few words.

    Where KV is not short, time decides, and a gain that the error of a forecast could feign is
    told as none, as in searches: other dtypes trade the quality of answers as well.
    """
    gain = max(found.own.request, 1 / found.own.request) - 1
    if not found.plain.binds and error is not None and gain <= error.tpot_p90:
        return f"no clear gain here, within forecast error (±{percent(error.tpot_p90)})"
    worth = "worth it here" if found.verdict == "for" else "not worth it here"
    return f"{worth}, {_SURE[found.sure]}"


def _changed(before: float | None, after: float | None, error: float | None) -> str:
    """Return a change in words; what lies within the error is no gain and no loss."""
    if not before or after is None:
        return "not known"
    ratio = after / before
    words = change(100 * (ratio - 1))
    if ratio == 1:
        return words
    if error is None:
        return f"{words}, error unknown"
    if ratio > 0 and max(ratio, 1 / ratio) <= 1 + error:
        return f"{words}, within error: no clear {'gain' if ratio < 1 else 'loss'}"
    return f"{words}, {'better' if ratio < 1 else 'worse'}"


def _latencies(
    dtype: str,
    plain: Mapping[str, Any],
    other: Mapping[str, Any],
    error: ForecastError | None,
) -> dict[str, list[str]]:
    table: dict[str, list[str]] = {"Latency": [], "16 bits": [], dtype: [], "Change": []}
    first, step = (error.ttft_p90, error.tpot_p90) if error else (None, None)
    for key, title, wrong in (("ttft_s", "TTFT", first), ("itl_s", "ITL", step)):
        for at in ("p50", "p99"):
            before, after = plain[key][at], other[key][at]
            row = (f"{title} {at.upper()}", seconds(before), seconds(after))
            for column, text in zip(table, (*row, _changed(before, after, wrong)), strict=True):
                table[column].append(text)
    return table


def _break_even(found: KvAdvice) -> tuple[str, ...]:
    seqs, longest = found.load.seqs, found.contexts[-1]
    return (
        f"A decode step of this scenario's {count(seqs)} sequences is faster "
        f"{_stretch(found.break_even[seqs], longest)}.",
        f"With what prefill loses, a request with answers of {count(found.load.output_tokens)} "
        f"tokens is faster {_stretch(found.request_break_even[seqs], longest, 'of prompt')}.",
    )


def _stretch(found: BreakEven | None, longest: int, of: str = "of context each") -> str:
    if found is None:
        return "at no context"
    if found.last >= longest:
        return f"from {count(found.first)} tokens {of} on"
    return f"from {count(found.first)} to {count(found.last)} tokens {of}"


def _steps(found: KvAdvice) -> dict[str, list[str]]:
    table = {"Sequences": [*(count(batch) for batch in found.batches), "prompt alone"]}
    for place, context in enumerate(found.contexts):
        ratios = [row[place] for row in found.step_ratios]
        table[f"{count(context)} tokens"] = [
            f"{ratio:.3f}" for ratio in (*ratios, found.prefill_ratios[place])
        ]
    return table
