"""The answer of `twin kv-dtype` in a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from twin.llm.kv_break_even import BreakEven
from twin.memory.kv_advice import KvAdvice
from twin.report.numbers import count, percent, significant

TITLE = "Decode step, and prompt alone, over the same with 16-bit KV"


def print_kv_advice(console: Console, found: KvAdvice) -> None:
    """Print whether a KV dtype pays."""
    console.print(Text(f"{found.name} · {found.llm} · {found.gpu} · {found.kv_cache_dtype} KV"))
    console.print(_table(found))
    for line in advice_lines(found):
        console.print(Text(line), soft_wrap=True)


def advice_lines(found: KvAdvice) -> list[str]:
    """Return the scenario's own point and the advice in sentences."""
    load, own, forecast = found.load, found.own, found.forecast
    rests = "measured kernels of both" if found.measured else "no table of this dtype: borrowed"
    return [
        f"Capacity: {significant(found.capacity_ratio)} times the KV tokens.",
        f"This scenario: {load.seqs:,} sequences decode together at {load.context_tokens:,} tokens "
        f"(prompt {load.prompt_tokens:,}, {load.cached_tokens:,} of it cached; answer "
        f"{load.output_tokens:,}).",
        f"There a step takes {own.step:.3f}, a prompt alone {own.prefill:.3f}, a request's GPU "
        f"time {own.request:.3f} of what 16 bits take.",
        f"Noise of the step's ratio: ±{percent(own.step_noise)} ({rests}); forecasts of TPOT err "
        f"by {percent(forecast.tpot_median)} in the median.",
        f"Advice: {found.verdict} {found.kv_cache_dtype} ({found.sure}).",
        *(f"  - {reason}" for reason in found.reasons),
        *_slo_lines(found),
    ]


def _slo_lines(found: KvAdvice) -> list[str]:
    """Say where the SLO is missed: a dtype that pays may still not be enough."""
    dtype, plain, other = found.kv_cache_dtype, found.plain, found.other
    if plain.slo_met is None or other.slo_met is None or (plain.slo_met and other.slo_met):
        return []
    shares = f"{_share(plain.slo_attainment)} and {_share(other.slo_attainment)} of requests"
    if plain.slo_met or other.slo_met:
        met, missed = (dtype, "16 bits") if other.slo_met else ("16 bits", dtype)
        return [f"SLO: met with {met}, missed with {missed} (16 bits and {dtype}: {shares})."]
    return [
        f"SLO: missed with 16 bits and with {dtype} alike ({shares} keep it): the dtype alone does "
        "not mend that."
    ]


def _share(share: float | None) -> str:
    return "none" if share is None else percent(share)


def _table(found: KvAdvice) -> Table:
    table = Table(title=TITLE, title_justify="left")
    table.add_column("batch", justify="right")
    for context in found.contexts:
        table.add_column(_short(context), justify="right")
    table.add_column("faster from", justify="right")
    table.add_column("with prefill", justify="right")
    for batch, ratios in zip(found.batches, found.step_ratios, strict=True):
        ends = (one[batch] for one in (found.break_even, found.request_break_even))
        table.add_row(
            str(batch), *_cells(ratios), *(_stretch(end, found.contexts[-1]) for end in ends)
        )
    table.add_row("prompt", *_cells(found.prefill_ratios), "", "")
    return table


def _cells(ratios: Sequence[float]) -> list[str]:
    return [f"{ratio:.3f}" for ratio in ratios]


def _short(tokens: int) -> str:
    return f"{tokens // 1024}k" if tokens % 1024 == 0 else count(tokens)


def _stretch(found: BreakEven | None, longest: int) -> str:
    if found is None:
        return "never"
    if found.last >= longest:
        return count(found.first)
    return f"{count(found.first)} to {count(found.last)}"
