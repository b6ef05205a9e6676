"""In which order the waiting queue is tried; sorting is in place and stays."""

from collections.abc import Callable
from math import inf

from twin.scheduling.sglang.core import SglangCore
from twin.scheduling.sglang.job import Job
from twin.scheduling.sglang.tree_node import TreeNode

_MOST_MATCHED = 128
"""Waiting requests that are matched in one pass; `lpm` and `hrrn` rest above it."""
_REFRESH_INTERVAL = 32
"""Every so many passes the prefixes of waiting requests are touched."""


def order_queue(core: SglangCore) -> None:
    """Sort the waiting queue by the schedule policy (SGLang 0.5.23, `SchedulePolicy`)."""
    policy = core.limits.schedule_policy
    if policy in _CACHE_AWARE_ORDERS and core.limits.disable_radix_cache:
        policy = "fcfs"
    rests = policy in ("lpm", "hrrn") and len(core.waiting) > _MOST_MATCHED
    if policy in _CACHE_AWARE_ORDERS and not rests:
        _CACHE_AWARE_ORDERS[policy](core, _match_waiting(core))
        return
    # A policy that rests keeps the order as it is, priorities included.
    if not rests:
        _AGNOSTIC_ORDERS[policy](core)
    _refresh_prefixes(core)


def _match_waiting(core: SglangCore) -> set[Job]:
    """Match every waiting request; return those that had better wait for another one.

    Where several share a prefix that is not cached, the first computes it for the others.
    """
    limits = core.limits
    size = limits.key_tokens
    shared_keys = -(-limits.in_batch_deprioritize_threshold // size)
    heads: set[tuple[object, ...]] = set()
    later: set[Job] = set()
    for job in core.waiting:
        known = job.known
        job.prefix = core.cache.match(job, known)
        job.matched = min(job.prefix, known - 1)
        if job.prefix > limits.in_batch_check_threshold or known // size < shared_keys:
            continue
        head = tuple(job.keys[:shared_keys])
        if head in heads:
            later.add(job)
        heads.add(head)
    return later


def _refresh_prefixes(core: SglangCore) -> None:
    """Touch the prefixes of the first waiting requests, the head of the queue last."""
    limits = core.limits
    if (
        not core.waiting
        or not limits.waiting_prefix_refresh
        or limits.radix_eviction_policy != "lru"
        or limits.disable_radix_cache
    ):
        return
    due = core.ordering_passes % _REFRESH_INTERVAL == 0
    core.ordering_passes += 1
    if due:
        tree, size = core.cache.tree, limits.key_tokens
        for job in reversed(core.waiting[:_MOST_MATCHED]):
            tree.match(job.keys, job.known // size)


def _fcfs(core: SglangCore) -> None:
    if core.limits.enable_priority_scheduling:
        core.waiting.sort(key=lambda job: (-job.urgency, job.queued))


def _lof(core: SglangCore) -> None:
    if core.limits.enable_priority_scheduling:
        core.waiting.sort(key=lambda job: (-job.urgency, -job.max_new))
    else:
        core.waiting.sort(key=lambda job: -job.max_new)


def _random(core: SglangCore) -> None:
    core.shuffle.shuffle(core.waiting)


def _routing_key(_: SglangCore) -> None:
    """Requests carry no routing keys here, and without them SGLang sorts nothing."""


_AGNOSTIC_ORDERS: dict[str, Callable[[SglangCore], None]] = {
    "fcfs": _fcfs,
    "lof": _lof,
    "random": _random,
    "routing-key": _routing_key,
}


def _lpm(core: SglangCore, later: set[Job]) -> None:
    core.waiting.sort(key=lambda job: inf if job in later else -job.matched)


def _dfs_weight(core: SglangCore, _: set[Job]) -> None:
    """Depth first through the tree, into the children with more waiting requests first."""
    ending: dict[TreeNode, list[Job]] = {}
    for job in core.waiting:
        if job.node is not None:
            ending.setdefault(job.node, []).append(job)
    weights = {node: len(jobs) for node, jobs in ending.items()}
    for node in reversed(list(core.cache.tree.nodes())):
        if node.parent is not None and node in weights:
            weights[node.parent] = weights.get(node.parent, 0) + weights[node]
    order: list[Job] = []
    stack = [(core.cache.tree.root, False)]
    while stack:
        node, left = stack.pop()
        if left:
            order += ending.get(node, ())
            continue
        stack.append((node, True))
        children = [child for child in node.children.values() if child in weights]
        children.sort(key=lambda child: -weights[child])
        stack.extend((child, False) for child in reversed(children))
    core.waiting[:] = order


def _hrrn(core: SglangCore, later: set[Job]) -> None:
    """Highest response ratio, in prefill tokens waited per token to compute."""

    def rank(job: Job) -> tuple[float, str, int]:
        request = job.state.request
        tie = (request.name, request.index)
        if job in later:
            return (inf, *tie)
        uncached = job.prompt - job.matched
        if uncached <= 0:
            return (-inf, *tie)
        return (-max(0, core.work_tokens - job.arrival_work) / uncached, *tie)

    core.waiting.sort(key=rank)


def _shortest_prefill_first(core: SglangCore, later: set[Job]) -> None:
    core.waiting.sort(key=lambda job: (job in later, uncached_work(job), job.queued))


def uncached_work(job: Job) -> int:
    """Return the tokens a waiting request has to compute, at least 1."""
    return max(1, job.known - job.matched)


_CACHE_AWARE_ORDERS: dict[str, Callable[[SglangCore, set[Job]], None]] = {
    "lpm": _lpm,
    "dfs-weight": _dfs_weight,
    "hrrn": _hrrn,
    "shortest-prefill-first": _shortest_prefill_first,
}
