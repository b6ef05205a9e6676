"""The one sentence a report opens with."""

from collections.abc import Mapping, Sequence
from typing import Any

from hwmodels.provenance import PRETENDED
from twin.report.numbers import limit, percent, percentile_name, seconds

_TITLES = {"ttft_s": "TTFT", "tpot_s": "TPOT"}
BOUND_WORDS = {
    "compute": "tensor-core compute",
    "hbm": "memory bandwidth (HBM)",
    "link": "links between GPUs",
    "launch": "kernel launches (CPU)",
}
"""What binds a step, for a reader."""


def pretended_line(notes: Sequence[str]) -> str:
    """Return the line that goes before everything else if durations come from a dry run; or ""."""
    found = any(PRETENDED in note for note in notes)
    return f"DRY RUN: {PRETENDED}; nothing below forecasts anything." if found else ""


def verdict(summary: Mapping[str, Any]) -> str:
    """Return whether the run met its objective, with the figures that decide it.

    `Meets the SLO: P99 TTFT 640 ms (SLO 1 s), P99 TPOT 21.0 ms (SLO 50 ms).`
    """
    if not summary["requests"]:
        return "No request reached the engine in this window. Lengthen it."
    if not summary["finished"]:
        return "No request finished. " + _losses(summary)
    slo = summary.get("slo")
    if not slo:
        ttft, itl = summary["ttft_s"]["p99"], summary["itl_s"]["p99"]
        return f"No SLO is set: P99 TTFT {seconds(ttft)}, P99 ITL {seconds(itl)}."
    parts = [_limits(slo), _losses(summary).rstrip(".")]
    if summary["slo_met"] is False and _served_in_time(slo):
        # What was served is fast enough: the lost requests are the reason, so they come first.
        parts.reverse()
    figures = "; ".join(filter(None, parts))
    if summary["slo_met"] is None:
        return f"The SLO cannot be judged: {figures}."
    word = "Meets" if summary["slo_met"] else "Misses"
    share = percent(summary["slo_attainment"])
    missed = "" if summary["slo_met"] else _missed(slo)
    return f"{word} the SLO{missed}: {figures}. {share} of requests met it."


def _missed(slo: Mapping[str, Any]) -> str:
    """Name the limits that are exceeded, where only some are."""
    titles = [title for key, title in _TITLES.items() if slo[f"{key}_limit"] is not None]
    failed = [
        title
        for key, title in _TITLES.items()
        if slo[f"{key}_limit"] is not None
        and slo[key] is not None
        and slo[key] > slo[f"{key}_limit"]
    ]
    return f" on {' and '.join(failed)}" if failed and len(failed) < len(titles) else ""


def _limits(slo: Mapping[str, Any]) -> str:
    name = percentile_name(slo["percentile"])
    return ", ".join(
        f"{name} {title} {seconds(slo[key])} (SLO {limit(slo[f'{key}_limit'])})"
        for key, title in _TITLES.items()
        if slo[f"{key}_limit"] is not None
    )


def _served_in_time(slo: Mapping[str, Any]) -> bool:
    return all(
        slo[key] is not None and slo[key] <= slo[f"{key}_limit"]
        for key in _TITLES
        if slo[f"{key}_limit"] is not None
    )


def _losses(summary: Mapping[str, Any]) -> str:
    parts = [
        f"{summary[key]:,} of {summary['requests']:,} requests {word}"
        for key, word in (
            ("rejected", "rejected"),
            ("failed", "lost with their replica"),
            ("unfinished", "unfinished at the end"),
        )
        if summary.get(key)
    ]
    clients = summary.get("clients")
    if clients and clients["timed_out"]:
        parts.append(f"{clients['timed_out']:,} of {clients['attempts']:,} attempts timed out")
    return f"{', '.join(parts)}." if parts else ""


def bound_sentence(summary: Mapping[str, Any]) -> str:
    """Return what limits the steps: `Steps are bound by memory bandwidth (HBM) for 81 % …`."""
    shares = summary["time_by_bound"]
    if None in shares.values():
        return "Steps were not recorded."
    name = max(shares, key=lambda key: shares[key], default="")
    if not name or not shares[name]:
        return "No step ran."
    rest = ", ".join(
        f"{BOUND_WORDS[other]} {percent(share)}"
        for other, share in sorted(shares.items(), key=lambda item: -item[1])
        if other != name and share > 0
    )
    tail = f" (the rest: {rest})" if rest else ""
    return f"Steps are bound by {BOUND_WORDS[name]} for {percent(shares[name])} of GPU time{tail}."
