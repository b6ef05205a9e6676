"""Retraction: who loses its KV when not even an eviction lets the decode batch go on."""

from twin.scheduling.sglang.core import SglangCore
from twin.scheduling.sglang.job import Job
from twin.step import StepPlan


def retract_for_decode(core: SglangCore, plan: StepPlan) -> None:
    """Take running requests' KV until one more token for each of the others fits.

    The one with the fewest outputs goes first, of equals that with the longest prompt, then the
    latest; at least one goes and the last one stays, unless it does not fit even alone. The
    others keep the sorted order. (SGLang 0.5.23, `ScheduleBatch.retract_decode`.)
    """
    kept = _most_worth_first(core)
    retracted: list[Job] = []
    while len(kept) > 1:
        job = kept.pop()
        core.retract(job, len(kept), plan)
        retracted.append(job)
        if core.cache.room_for_decode(kept):
            break
    if len(kept) == 1 and not core.cache.room_for_decode(kept):
        core.abort(kept.pop())
    core.running[:] = kept
    core.ratio.estimate(kept)
    for job in retracted:
        core.join_queue(job)


def _most_worth_first(core: SglangCore) -> list[Job]:
    by_priority = core.limits.retraction_policy == "priority"

    def worth(job: Job) -> tuple[int, int, int]:
        return job.urgency if by_priority else 0, job.state.num_output, -job.prompt

    # Reversed sorting keeps equals in order.
    return sorted(core.running, key=worth, reverse=True)
