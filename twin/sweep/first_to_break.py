"""`first_to_break`: which resource gives way first as the load grows."""

from dataclasses import dataclass
from typing import Literal

from twin.report.numbers import (
    count,
    limit,
    load,
    percent,
    percentile_name,
    seconds,
    significant,
)
from twin.report.slo import Slo
from twin.report.verdict import BOUND_WORDS
from twin.sweep.point import LoadPoint
from twin.sweep.sweep import LoadSweep
from twin.sweep.waits import BUDGET, KV, KV_FULL, SEATS

Resource = Literal[
    "kv", "max_num_seqs", "token_budget", "compute", "hbm", "link", "launch", "lost", "none"
]

SOME = 0.05
"""Waiting for a resource for less than this share of the time is a burst, not a limit."""
FULL = 0.1
"""Requests that wait for full steps for this share of the time wait longer for it at P99."""
SATURATED = 0.8
"""Compute that binds less of the GPU's time than this has room left: larger steps would use it."""

_NAMES = {"kv": "KV capacity", "max_num_seqs": "max_num_seqs", "token_budget": "the token budget"}


@dataclass(frozen=True, slots=True)
class FirstToBreak:
    """What gives way first.

    Attributes:
        resource: `kv` capacity; `max_num_seqs`, seats all taken while KV is free; `token_budget`
            (max_num_batched_tokens), first tokens late behind full steps while compute has room;
            what binds the steps that are too slow: `compute`, `hbm`, `link`, `launch` (the CPU);
            `lost`: requests that are refused or lost, whatever the GPU does; `none` does.
        offered, factor: the load at which it shows; None: nothing breaks.
        sentence: for a reader: which figure breaks at which load, then what binds and the evidence.
    """

    resource: Resource
    offered: float | None
    factor: float | None
    sentence: str


def breaks(point: LoadPoint) -> bool:
    """Whether something gives way at a load.

    It does not hold, its queue grows, it preempts, or requests wait for KV or a seat for `SOME` of
    the time.
    """
    waited = max(point.waits[KV], point.waits[SEATS]) >= SOME
    return not point.holds or point.queue_grows or point.preemptions > 0 or waited


def first_to_break(sweep: LoadSweep) -> FirstToBreak:
    """Return which resource gives way first, judged at the lowest load at which something does."""
    point = next((point for point in sweep.points if breaks(point)), None)
    if point is None:
        last = sweep.points[-1]
        times = f"{significant(last.factor)} times the scenario's load"
        words = f"Nothing breaks up to {load(last.offered, sweep.unit)} {sweep.unit}, {times}."
        return FirstToBreak("none", None, None, words)
    resource = _resource(point, sweep.slo)
    if point is sweep.points[0]:
        head = "Broken already at the lowest load"
    elif point.factor > 1:
        head = "First to break at higher load"
    else:
        head = "First to break, below the scenario's own load"
        if point.factor == 1:
            head = "First to break, at the scenario's own load"
    where = f"at {load(point.offered, sweep.unit)} {sweep.unit}"
    name = "no resource" if resource == "lost" else _NAMES.get(resource) or BOUND_WORDS[resource]
    evidence, told = _evidence(resource, point), _told(resource, point, sweep)
    words = f"{head}: {name} ({where} {evidence})."
    if told:
        words = f"{head}: {told} {where}. What binds is {name}: {evidence}."
    return FirstToBreak(resource, point.offered, point.factor, words)


def _told(resource: Resource, point: LoadPoint, sweep: LoadSweep) -> str:
    """Return what a client sees of it: limits that are exceeded, the worst first; "" if nothing."""
    if resource == "lost":
        return ""
    name = percentile_name(sweep.slo.percentile)
    over = [
        (value / most, f"{name} {title} {seconds(value)} is over {limit(most)}")
        for title, value, most in (
            ("TTFT", point.slo_ttft_s, sweep.slo.ttft_s),
            ("TPOT", point.slo_tpot_s, sweep.slo.tpot_s),
        )
        if value is not None and most is not None and value > most
    ]
    parts = [words for _, words in sorted(over, reverse=True)]
    if point.queue_grows:
        parts.append("the queue grows")
    if not parts and not point.holds:
        # Each limit is kept at its percentile, but not by the same requests.
        parts.append(f"{percent(point.slo_attainment)} of requests are within the SLO")
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if parts[1:] else "".join(parts)


def _resource(point: LoadPoint, slo: Slo) -> Resource:
    seats, kv = point.waits[SEATS], point.waits[KV]
    if seats >= SOME and seats > kv:
        return "max_num_seqs"
    if point.preemptions or kv >= SOME:
        return "kv"
    if not point.queue_grows and point.lost and _served_in_time(point, slo):
        return "lost"
    bound = max(point.bound, key=lambda name: point.bound[name])
    late = point.queue_grows or _over(point.slo_ttft_s, slo.ttft_s)
    if late and point.waits[BUDGET] >= FULL and point.bound["compute"] < SATURATED:
        return "token_budget"
    names: dict[str, Resource] = {
        "compute": "compute", "hbm": "hbm", "link": "link", "launch": "launch"
    }  # fmt: skip
    return names[bound]


def _served_in_time(point: LoadPoint, slo: Slo) -> bool:
    """Whether what was served meets the limits, so that lost requests alone fail them."""
    pairs = ((point.slo_ttft_s, slo.ttft_s), (point.slo_tpot_s, slo.tpot_s))
    return not any(_over(value, limit) for value, limit in pairs)


def _over(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value > limit


def _evidence(resource: Resource, point: LoadPoint) -> str:
    peak = f"peaks at {percent(point.kv_peak)}"
    if resource == "kv":
        waited = point.waits[KV]
        # Blocks are short though few are in use: an engine keeps them for answers to come.
        unused = waited and point.kv_peak is not None and point.kv_peak < KV_FULL
        kept = " that are reserved, not in use" if unused else ""
        waiting = f", requests wait {percent(waited)} of the time for blocks{kept}"
        return f"usage {peak}, {_preemptions(point)}{waiting if waited else ''}"
    if resource == "max_num_seqs":
        return (
            f"requests wait for one of {count(point.seats)} seats {percent(point.waits[SEATS])} of "
            f"the time, KV usage {peak}"
        )
    if resource == "lost":
        return f"{count(point.lost)} of {count(point.requests)} requests were refused or lost"
    if resource == "token_budget":
        full = f"full steps of {count(point.step_tokens)} tokens {percent(point.waits[BUDGET])}"
        room = f"compute binds {percent(point.bound['compute'])} of GPU time"
        return f"requests wait for {full} of the time, while {room}"
    share = f"{percent(point.bound[resource])} of GPU time{_second(resource, point)}"
    return f"{share}; GPU busy {percent(point.gpu_busy_share)}, KV {peak}"


def _second(resource: Resource, point: LoadPoint) -> str:
    """What else binds steps for a good part of the time: the first is then no clear winner."""
    others = {name: share for name, share in point.bound.items() if name != resource}
    name = max(others, key=lambda other: others[other])
    if others[name] < SOME:
        return ""
    return f", {BOUND_WORDS[name]} {percent(others[name])}"


def _preemptions(point: LoadPoint) -> str:
    return f"{count(point.preemptions)} preemption{'' if point.preemptions == 1 else 's'}"
