"""What keeps a policy from doing better: arrivals, a cap, KV capacity, compute, HBM, links."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twin.report.numbers import count, percent, significant
from twin.report.verdict import bound_sentence

FULL = 0.95
"""Share of KV blocks in use from which they count as used up."""

BUSY = 0.8
"""Share of time that the GPU is busy from which it counts as what limits."""


@dataclass(frozen=True, slots=True)
class Binding:
    """What binds a run.

    Attributes:
        what: `KV capacity`, `the cap on requests`, `compute`, `HBM`, `link`, `launch`, or
            `arrivals`: nothing does.
        sentence: the same with the figures that say so.
        shares: of GPU time by what bounds the steps.
        figures: (what, figure) lines for a table.
    """

    what: str
    sentence: str
    shares: Mapping[str, float]
    figures: tuple[tuple[str, str], ...]


_NAMES = {"compute": "compute", "hbm": "HBM", "link": "link", "launch": "launch"}


def binding(summary: Mapping[str, Any], inputs: Mapping[str, Any]) -> Binding:
    """Return what binds a run that recorded all its steps.

    Args:
        summary: its figures, from `summarise`.
        inputs: its scenario, the engine's defaults filled in.

    Requests that wait while blocks are used up wait for KV; those that wait at the cap on
    running requests wait for it. Where nothing waits, an open loop's throughput is what arrives,
    however busy the GPU: a batch is as large as its requests. Else what bounds most GPU time
    binds.
    """
    usage, running, waiting = (summary[k] for k in ("kv_cache_usage", "running", "waiting"))
    shares = {k: v for k, v in summary["time_by_bound"].items() if v}
    busy = summary["gpu_busy_share"] or 0.0
    cap = (inputs.get("policy") or {}).get("max_num_seqs")
    queues = (waiting["mean"] or 0.0) > 0.5
    peak = usage["max"] or 0.0
    steps = bound_sentence(summary)
    preempted = summary["preemptions"]
    if preempted or (queues and peak >= FULL):
        what = "KV capacity"
        sentence = (
            f"KV capacity binds: {percent(peak)} of the blocks in use at the peak, "
            f"{count(preempted)} preemptions, {significant(waiting['mean'])} requests waiting on "
            f"average. {steps}"
        )
    elif queues and cap is not None and (running["max"] or 0) >= cap:
        what = "the cap on requests"
        sentence = (
            f"max_num_seqs of {count(cap)} binds: {significant(waiting['mean'])} requests wait on "
            f"average with {percent(peak)} of the KV blocks in use at the peak. {steps}"
        )
    elif not queues and (busy < BUSY or not _waits_for_answers(inputs)):
        what = "arrivals"
        sentence = (
            "Nothing waits, so throughput is what arrives: on average "
            f"{significant(running['mean'])} requests run, KV peaks at {percent(peak)}. {steps}"
        )
    else:
        what = _NAMES[max(shares, key=lambda key: shares[key])] if shares else "arrivals"
        sentence = f"The GPU binds, busy {percent(busy)} of the time. {steps}"
    return Binding(what, sentence, shares, _figures(summary))


def _waits_for_answers(inputs: Mapping[str, Any]) -> bool:
    """Whether faster answers bring more requests."""
    workload = inputs.get("workload") or {}
    next_turn = (workload.get("next_turn") or {}).get("kind")
    return workload.get("kind") == "closed_loop" or next_turn == "after_answer"


def _figures(summary: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    usage, running, waiting = (summary[k] for k in ("kv_cache_usage", "running", "waiting"))
    bounds = (
        (f"GPU time bound by {_NAMES.get(name, name)}", percent(share))
        for name, share in summary["time_by_bound"].items()
    )
    return (
        ("GPU busy", percent(summary["gpu_busy_share"])),
        *bounds,
        ("KV blocks a replica", count(summary["kv_blocks"])),
        ("KV usage, mean", percent(usage["mean"])),
        ("KV usage, peak", percent(usage["max"])),
        ("Preemptions", count(summary["preemptions"])),
        ("Running, mean", significant(running["mean"])),
        ("Waiting, mean", significant(waiting["mean"])),
        ("Prefix hit rate", percent(summary["prefix_cache_hit_rate"])),
    )
