"""What processing a batch's result does: tokens arrive, requests end, prefixes are kept."""

from twin.request import Status
from twin.scheduling.sglang.core import Launch, SglangCore
from twin.scheduling.sglang.job import Job
from twin.step import StepOutcome


def process(core: SglangCore, launch: Launch) -> StepOutcome:
    """Process the oldest result; its batch has been taken off `core.launches`.

    A token of a request that has ended or been retracted since is dropped. A prompt whose last
    chunk is done is kept in the tree, an answer once it ends. (SGLang 0.5.23,
    `process_batch_result_prefill` and `_decode`.)
    """
    outcome = StepOutcome()
    deliver = outcome.delivered.append
    for job, _, _ in launch.prefill:
        if job.middle_chunks and not job.retracted:
            job.middle_chunks -= 1
        elif _takes_token(core, job, outcome):
            core.cache.checkpoint(job, job.extend_end)
            job.prefix = job.extend_end
    for job in launch.decode:
        if job.finished or job.retracted:
            outcome.discarded.append(job.state)
            continue
        state = job.state
        state.num_output = output = state.num_output + 1
        deliver(state)
        if output >= state.output_limit:
            _finish(core, job, outcome)
    return outcome


def _takes_token(core: SglangCore, job: Job, outcome: StepOutcome) -> bool:
    """Give a prefilled request its token; return whether it goes on."""
    state = job.state
    if job.finished or job.retracted:
        outcome.discarded.append(state)
        return False
    state.num_output += 1
    outcome.delivered.append(state)
    if state.num_output >= state.output_limit:
        _finish(core, job, outcome)
        return False
    return True


def _finish(core: SglangCore, job: Job, outcome: StepOutcome) -> None:
    """End a request whose token has just been delivered; one given up gets none."""
    state = job.state
    if state.finish_reason:
        outcome.discarded.append(outcome.delivered.pop())
    else:
        stop = state.request.stop_after_tokens
        state.finish_reason = "stop" if state.num_output == stop else "length"
        outcome.finished.append(state)
    state.status = Status.FINISHED
    job.finished = True
    core.cache.release(job, keep=True)
    core.someone_left = True
    core.unfinished -= 1
