"""How many GPUs a setup needs to meet its SLO."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from app.answers.capacity.deployment import gpu_title
from app.answers.forecast.certainty import certainty_of
from app.answers.setup import Setup
from twin.report.numbers import count, limit, percent, percentile_name, seconds, significant
from twin.report.slo import Slo
from twin.sweep.sizing import SizedRun, Sizing, size_replicas

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class SizingAnswer:
    """What the page says.

    Attributes:
        sentence: the smallest number of GPUs, and within the forecast's error.
        error: where that error comes from, one sentence.
        table: every number that was simulated, columns by heading.
        notes: caveats, a sentence each.
    """

    sentence: str
    error: str
    table: dict[str, list[str]]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data that `SizingAnswer(**data)` takes."""
        return asdict(self)


def sizing(setup: Setup, progress: Progress | None = None) -> SizingAnswer:
    """Find the smallest number of replicas that meets a setup's SLO.

    Args:
        setup: what is asked.
        progress: called with (runs done, runs in all as far as known).

    Raises:
        InputError: its parts do not go together, or there is no SLO.
    """
    file, inputs = setup.inputs()
    found = size_replicas(file, inputs, progress=progress)
    sure = certainty_of(setup.scenario())
    return sizing_answer(found, "" if sure.ttft is not None else sure.basis)


def sizing_answer(found: Sizing, unknown: str = "") -> SizingAnswer:
    """Return a sizing in words.

    Args:
        found: what was simulated.
        unknown: why the forecast's error is not known; empty: it is.
    """
    error = found.error
    return SizingAnswer(
        sentence=_sentence(found, unknown),
        error=f"Error unknown: {unknown}."
        if unknown
        else (
            f"Within the forecast's error: with latencies shorter and longer by its P90 held-out "
            f"error, TTFT ±{percent(error.ttft_p90)}, TPOT ±{percent(error.tpot_p90)}, "
            f"n = {error.rows} ({error.basis})."
        ),
        table=_table(found, bool(unknown)),
        notes=found.notes,
    )


def _sentence(found: Sizing, unknown: str) -> str:
    name = gpu_title(found.gpu)
    wish = objective(found.slo)
    each = found.gpus_a_replica
    if found.replicas is None:
        words = f"Not even {_gpus(found.most * each, name)} meet {wish}"
        if found.low is not None and not unknown:
            words += f"; {count(found.low * each)} may, within the forecast's error"
        return f"{words}. More of them do not help where one alone is too slow: see the table."
    words = f"{_gpus(found.replicas * each, name)} for {wish}"
    spread = "error unknown" if unknown else _spread(found)
    split = f" ({count(found.replicas)} replicas of {each})" if each > 1 else ""
    return f"{words}{split}; {spread}."


def _spread(found: Sizing) -> str:
    each, low, high = found.gpus_a_replica, found.low, found.high
    if low == high == found.replicas:
        return "the forecast's error does not change that"
    least = count((low or found.replicas or 1) * each)
    if high is None:
        return f"{least} to more than {count(found.most * each)} within the forecast's error"
    return f"{least}–{count(high * each)} within the forecast's error"


def _gpus(number: int, name: str) -> str:
    return f"{count(number)} {name}{'s' if number > 1 else ''}"


def objective(slo: Slo) -> str:
    """Return an SLO in words: `P99 TTFT 1 s and TPOT 50 ms`."""
    parts = [
        f"{name} {limit(value)}"
        for name, value in (("TTFT", slo.ttft_s), ("TPOT", slo.tpot_s))
        if value is not None
    ]
    return f"{percentile_name(slo.percentile)} {' and '.join(parts)}"


def _table(found: Sizing, unknown: bool) -> dict[str, list[str]]:
    at, runs = percentile_name(found.slo.percentile), found.runs
    table = {
        "Replicas": [count(run.replicas) for run in runs],
        "GPUs": [count(run.replicas * found.gpus_a_replica) for run in runs],
        "Meets the SLO": [_met(run, unknown) for run in runs],
        f"{at} TTFT": [seconds(run.slo_ttft_s) for run in runs],
        f"{at} TPOT": [seconds(run.slo_tpot_s) for run in runs],
        "Requests within it": [percent(run.slo_attainment) for run in runs],
        "Goodput (req/s)": [significant(run.goodput_per_s) for run in runs],
        "KV peak": [percent(run.kv_peak) for run in runs],
    }
    for title, value in (("TTFT", found.slo.ttft_s), ("TPOT", found.slo.tpot_s)):
        if value is None:
            del table[f"{at} {title}"]
    return table


def _met(run: SizedRun, unknown: bool) -> str:
    slo = run.slo
    if slo.met is None:
        return "not known"
    words = "yes" if slo.met else "no"
    sure = slo.met_if_slower if slo.met else slo.met_if_faster is False
    return words if sure or unknown else f"{words}, within error"
