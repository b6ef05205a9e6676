"""What a sizing says, in sentences."""

from twin.report.numbers import count, limit, percent, percentile_name, seconds
from twin.sweep.sizing import SizedRun, Sizing


def sizing_sentences(sizing: Sizing) -> list[str]:
    """Return how many GPUs are needed, how sure that is, and how far one replica fewer misses."""
    found = [_needed(sizing), _within_error(sizing)]
    fewer = sizing.run((sizing.replicas or 0) - 1)
    if sizing.replicas is None:
        fewer = sizing.runs[-1]
    if fewer is not None:
        found.append(f"With {_replicas(fewer.replicas)}: {_missed(sizing, fewer)}.")
    return found


def _needed(sizing: Sizing) -> str:
    slo = sizing.slo
    limits = " and ".join(
        f"{percentile_name(slo.percentile)} {title} {limit(value)}"
        for title, value in (("TTFT", slo.ttft_s), ("TPOT", slo.tpot_s))
        if value is not None
    )
    if sizing.replicas is None:
        return f"No number of replicas up to {sizing.most} meets the SLO ({limits})."
    gpus = f"{count(sizing.gpus)} x {sizing.gpu}"
    whole = f"{_replicas(sizing.replicas)} of {sizing.gpus_a_replica}"
    verb = "meets" if sizing.gpus == 1 else "meet"
    return f"{gpus} ({whole}) {verb} the SLO ({limits})."


def _within_error(sizing: Sizing) -> str:
    error, slo = sizing.error, sizing.slo
    parts = [
        f"{title} ±{percent(value)}"
        for title, value, asked in (
            ("TTFT", error.ttft_p90, slo.ttft_s),
            ("TPOT", error.tpot_p90, slo.tpot_s),
        )
        if asked is not None
    ]
    basis = f"P90 held-out error: {', '.join(parts)}, n = {error.rows}"
    return f"Within the forecast's error: {_range(sizing)} ({basis})."


def _range(sizing: Sizing) -> str:
    low, high, most = sizing.low, sizing.high, sizing.most
    if low is None:
        return f"none up to {most} does either"
    if high is None:
        return f"{low} at least, and possibly more than {most} replicas"
    return _replicas(low) if low == high else f"{low}–{high} replicas"


def _replicas(number: int) -> str:
    return f"{number} replica{'' if number == 1 else 's'}"


def _missed(sizing: Sizing, run: SizedRun) -> str:
    """How far a run misses the objective."""
    name = percentile_name(sizing.slo.percentile)
    parts = [
        f"{name} {title} {seconds(value)}"
        for title, value, asked in (
            ("TTFT", run.slo_ttft_s, sizing.slo.ttft_s),
            ("TPOT", run.slo_tpot_s, sizing.slo.tpot_s),
        )
        if asked is not None
    ]
    return f"{', '.join(parts)}, {percent(run.slo_attainment)} of requests within the SLO"
