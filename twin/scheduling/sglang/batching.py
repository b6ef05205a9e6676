"""What a turn decides: who decodes on, who is prefilled, and what becomes a batch."""

from twin.request import RequestState, Status
from twin.scheduling.sglang.admission import PrefillPass, admit_prefill
from twin.scheduling.sglang.core import Launch, SglangCore
from twin.scheduling.sglang.decode_pass import decode_running
from twin.scheduling.sglang.job import Job
from twin.step import StepPlan


def next_batch(core: SglangCore, plan: StepPlan) -> Launch | None:
    """Decide a batch and allocate its KV; None: nothing is launched in this turn.

    A prefill batch goes first and runs alone, or with the decodes if chunks are mixed.
    (SGLang 0.5.23, `Scheduler.get_next_batch_to_run`.)
    """
    chunked = core.chunked
    if chunked is not None and chunked.extend_end > chunked.prefix:
        # Its tokens are computed, or will be before anything that uses them.
        core.cache.checkpoint(chunked, chunked.extend_end)
        chunked.prefix = chunked.extend_end
    if core.last:
        _merge_last(core)
    if core.someone_left:
        _drop_finished(core)
    admitted = admit_prefill(core, plan)
    if admitted is not None:
        return _prefill_batch(core, admitted, plan)
    if core.running:
        jobs = decode_running(core, plan)
        if jobs:
            # SGLang's batch still carries the count of the prefill that it grew from.
            core.work_tokens += core.carried_tokens
            return _decode_batch(jobs, plan)
    return None


def _merge_last(core: SglangCore) -> None:
    """Let the requests of a prefill batch join the running ones, but for an unfinished prompt."""
    chunked = core.chunked
    joining = [job for job in core.last if job is not chunked and not job.finished]
    if len(joining) < len(core.last):
        core.full = False
    core.last = []
    if not joining:
        return
    if not core.running:
        core.full = False
        core.carried_tokens = core.last_tokens
    core.running += joining


def _drop_finished(core: SglangCore) -> None:
    core.someone_left = False
    left = [job for job in core.running if not job.finished]
    if len(left) < len(core.running):
        core.running[:] = left
        core.full = False


def _prefill_batch(core: SglangCore, admitted: PrefillPass, plan: StepPlan) -> Launch:
    batch = admitted.batch
    core.cache.extend(batch)
    launch = Launch(
        prefill=[(job, job.prefix, job.extend_end - job.prefix) for job in batch],
        chunked=core.chunked,
        continued=admitted.continued,
    )
    _enter_prefills(core, launch, plan)
    if core.limits.mixed and core.running:
        launch.decode = _mixed_decodes(core)
        _enter_decodes(launch.decode, plan)
    launch.jobs = batch + launch.decode
    core.last = list(launch.jobs)
    core.last_tokens = plan.total_tokens
    core.work_tokens += plan.total_tokens
    return launch


def _enter_prefills(core: SglangCore, launch: Launch, plan: StepPlan) -> None:
    readmitted: list[tuple[RequestState, int]] = []
    for job, prefix, tokens in launch.prefill:
        state = job.state
        job.retracted = False
        plan.scheduled.append((state, tokens))
        plan.total_tokens += tokens
        if job is launch.chunked:
            job.middle_chunks += 1
        else:
            plan.samples.append(state)
        if job is not launch.continued:
            _count_look_up(core, job, prefix)
            admissions = readmitted if state.preemptions else plan.admitted
            admissions.append((state, prefix))
            state.status = Status.RUNNING
            if state.cached_tokens < 0:
                state.cached_tokens = prefix
    plan.admitted += readmitted


def _count_look_up(core: SglangCore, job: Job, hit_tokens: int) -> None:
    """Count a look-up, once its request is admitted; those after a retraction stand apart."""
    prefix = core.prefix
    if job.state.preemptions:
        prefix.preempted_requests += 1
        prefix.preempted_queries += job.fill
        prefix.preempted_hits += hit_tokens
    else:
        prefix.requests += 1
        prefix.queries += job.fill
        prefix.hits += hit_tokens


def _mixed_decodes(core: SglangCore) -> list[Job]:
    """Return the running requests that decode beside the prefills; none if they do not fit."""
    leaving = core.foreseen_finishers()
    if leaving:
        core.running[:] = [job for job in core.running if job not in leaving]
        core.full = False
    if not core.running or not core.cache.room_for_decode(core.running):
        return []
    core.cache.decode(core.running)
    for job in core.running:
        job.refresh()
        job.extend_end = job.state.num_computed
    jobs = core.running
    core.running = []
    return jobs


def _enter_decodes(jobs: list[Job], plan: StepPlan) -> None:
    states = [job.state for job in jobs]
    plan.scheduled += [(state, 1) for state in states]
    plan.samples += states
    plan.total_tokens += len(states)


def _decode_batch(jobs: list[Job], plan: StepPlan) -> Launch:
    _enter_decodes(jobs, plan)
    batch = list(jobs)
    return Launch(decode=batch, jobs=batch)
