"""Priority preemption: a more urgent waiting request takes a running one's place."""

from twin.scheduling.sglang.core import SglangCore
from twin.scheduling.sglang.job import Job
from twin.scheduling.sglang.prefill_budget import PrefillBudget, promised
from twin.step import StepPlan


def preempt_for(core: SglangCore, budget: PrefillBudget, job: Job, plan: StepPlan) -> list[Job]:
    """Release running requests so that `job` can be tried; return them, or none.

    The least urgent go first, of equals the latest; each must be less urgent by more than the
    threshold, and together they must cover what `job` lacks. Its size is as last put together,
    so a request that was never tried counts its output only. (SGLang 0.5.23,
    `PrefillAdder.preempt_to_schedule`.)
    """
    limits = core.limits
    lacking = (
        job.fill
        - job.prefix
        + min(job.max_new, limits.clip_max_new_tokens_estimation)
        - budget.total_left
    )
    victims: list[Job] = []
    candidates = [running for running in core.running if not running.finished]
    candidates.sort(key=lambda running: (running.urgency, -running.queued))
    for running in candidates:
        if job.urgency - running.urgency <= limits.priority_scheduling_preemption_threshold:
            break
        victims.append(running)
        lacking -= promised(core, running)
        if lacking <= 0:
            break
    if not victims or lacking > 0:
        return []
    _release(core, budget, set(victims), plan)
    return victims


def _release(core: SglangCore, budget: PrefillBudget, victims: set[Job], plan: StepPlan) -> None:
    """Take the victims' KV in the order in which they run."""
    remaining = len(core.running)
    for running in core.running:
        if running in victims:
            budget.total_promised -= promised(core, running)
            remaining -= 1
            core.retract(running, remaining, plan)
    core.running[:] = [running for running in core.running if running not in victims]
