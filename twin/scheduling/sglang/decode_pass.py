"""The decode pass: one token for every running request, or fewer requests."""

from twin.scheduling.sglang.core import SglangCore
from twin.scheduling.sglang.job import Job
from twin.scheduling.sglang.retraction import retract_for_decode
from twin.step import StepPlan


def decode_running(core: SglangCore, plan: StepPlan) -> list[Job]:
    """Return the decode batch of this turn, its KV allocated; empty: none.

    Requests that the result on its way ends by length are left out, and if memory then still
    lacks, the turn is left out: that result frees theirs. Otherwise somebody is retracted.
    (SGLang 0.5.23, `Scheduler.update_running_batch`.)
    """
    before = len(core.running)
    leaving = core.foreseen_finishers()
    if leaving:
        core.running[:] = [job for job in core.running if job not in leaving]
        if not core.running:
            core.full = False
            return []
    if core.cache.room_for_decode(core.running):
        core.ratio.fall()
    elif leaving:
        core.full = False
        return []
    else:
        retract_for_decode(core, plan)
    if len(core.running) < before:
        core.full = False
    core.cache.decode(core.running)
    return core.running
