"""Runs of turns in which every running request of SGLang's scheduler decodes one token.

As long as nothing arrives and nobody ends, such a run is known ahead: `quiet_calls` says how many
turns it lasts at least, `skip_calls` does what that many turns would do, each followed by the
processing of the oldest result on its way. What decodes evict from the prefix tree is evicted in
the turn that needs it. A scheduler after both is in every field the one that went turn by turn.
"""

from collections import Counter

from twin.scheduling.memory_left import steps_that_fit
from twin.scheduling.sglang.admission import free_slots
from twin.scheduling.sglang.core import SglangCore
from twin.scheduling.sglang.kv_cache import KvCache


def quiet_calls(core: SglangCore) -> int:
    """Return how many turns from now on are decodes of all running requests.

    0: the next one may not be, or nobody knows without trying it. With overlap one result must be
    on its way, without none.
    """
    if not core.running or not _is_settled_decode(core) or _may_prefill(core):
        return 0
    # Neither may a result end somebody, nor a decision foresee that the one on its way does.
    calls = min(
        min(job.state.output_limit, job.max_new) - job.state.num_output for job in core.running
    )
    return _with_memory(core, calls - 1) if calls > 1 else 0


def _is_settled_decode(core: SglangCore) -> bool:
    """Whether the batch of the last turn was the running requests, and they are all there."""
    if core.chunked is not None or core.last or core.aborted:
        return False
    if core.someone_left and any(job.finished for job in core.running):
        return False
    if not core.limits.overlap:
        return not core.launches
    if len(core.launches) != 1:
        return False
    launch = core.launches[0]
    return not launch.prefill and launch.decode == core.running


def _may_prefill(core: SglangCore) -> bool:
    """Whether a turn would look at the waiting queue."""
    if not core.waiting:
        return False
    return core.limits.preempts or not (core.full or free_slots(core) <= 0)


def _with_memory(core: SglangCore, calls: int) -> int:
    """Return how many of `calls` turns find their pages, free or to be evicted."""
    page, pages = core.limits.page_size, core.cache.available // core.limits.page_size
    plenty = len(core.running) * (calls // page + 1) <= pages

    def needed(turns: int) -> int:
        held = (job.state.num_computed for job in core.running)
        return sum(-(-(tokens + turns) // page) - -(-tokens // page) for tokens in held)

    return steps_that_fit(calls, plenty, pages, needed)


def skip_calls(core: SglangCore, calls: int) -> list[int]:
    """Advance by that many quiet turns; return the pages each of them takes."""
    if core.limits.preempts:
        core.full = False
    elif core.waiting:
        core.full = True
    taken = pages_by_turn(core, calls)
    _take_pages(core.cache, core.limits.page_size, len(core.running), taken)
    for job in core.running:
        job.state.num_computed += calls
        job.state.num_output += calls
    core.ratio.fall(calls)
    core.work_tokens += calls * core.carried_tokens
    core.someone_left = core.settled = False
    return taken


def pages_by_turn(core: SglangCore, calls: int) -> list[int]:
    """Return the pages that each of so many quiet turns takes.

    A request takes one in the turn that finds those it holds full.
    """
    page = core.limits.page_size
    if page == 1:
        return [len(core.running)] * calls
    phases = Counter(-job.state.num_computed % page for job in core.running)
    return [phases[turn % page] for turn in range(calls)]


def _take_pages(cache: KvCache, page: int, jobs: int, taken: list[int]) -> None:
    """Take pages turn by turn; each first makes room for a page a job (`KvCache.decode`)."""
    free, room = cache.free, jobs * page
    if free < sum(taken) * page + room:
        for pages in taken:
            if free < room:
                cache.free = free
                cache.make_room(room)
                free = cache.free
            free -= pages * page
        cache.free = free
    else:
        cache.free -= sum(taken) * page
