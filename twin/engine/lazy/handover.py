"""From sums back to requests: what a lazy core knows, as the plain scheduler keeps it."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from hwmodels.host import HostCosts
from twin.engine.in_flight import InFlight
from twin.engine.lazy.batch import Job
from twin.engine.lazy.core import Call, LazyCore
from twin.request import RequestState, Status
from twin.scheduling import VllmV1Scheduler
from twin.step import StepPlan


@dataclass(slots=True)
class Flight:
    """A call whose step has been launched and not processed yet."""

    call: Call
    end_s: float
    empty: bool

    def out_s(self, host: HostCosts, now_s: float) -> float:
        """Return when its tokens leave the engine, if it is waited for from `now_s` on."""
        return host.out_s(now_s, self.end_s, self.call.seqs, empty=self.empty)


def sampled_tokens(job: Job, call: int) -> int:
    """Return the tokens of a request that calls up to `call` sampled and that count."""
    if not job.first_call:
        return 0
    return min(max(call - job.first_call + 2, 0), job.state.output_limit)


def hand_over(
    core: LazyCore, flights: Iterable[Flight], scheduler: VllmV1Scheduler
) -> deque[InFlight]:
    """Give a lazy core's requests to an idle scheduler; return the steps in flight as it has them.

    Blocks get whatever number: no request has content that others could hit, so only how many
    are held and which are full can be told apart.
    """
    flying = list(flights)
    engine = scheduler.core
    scheduler.next_call = core.call
    for job in core.running.values():
        _restore(job, core, flying, scheduler)
        engine.running.append(job.state)
    for state in core.waiting:
        engine.add(state)
    if core.unsent:
        engine.unsent.append(_GONE)
    return deque(InFlight(_plan(f.call, core), f.end_s, f.empty) for f in flying)


def _restore(job: Job, core: LazyCore, flying: list[Flight], scheduler: VllmV1Scheduler) -> None:
    """Set a running request's progress, and give it its blocks."""
    state, limits, engine = job.state, core.limits, scheduler.core
    computed = job.tokens_before(core.call)
    engine.prepare(state)
    state.status, state.num_computed = Status.RUNNING, computed
    seen = core.call - 1 - len(flying)
    state.num_output = sampled_tokens(job, seen)
    if limits.overlapping:
        state.in_flight = sum(_tokens_in(job, flight.call) for flight in flying)
        state.placeholders = sum(_samples_in(job, flight.call) for flight in flying)
    engine.pool.allocate(-(-computed // limits.block_size), state.blocks)
    if limits.enable_prefix_caching:
        # A token sampled by a step still in flight had no content when the last call was made.
        decoding = bool(job.first_call) and computed > job.prompt_tokens
        engine.cache_up_to(state, computed - (1 if decoding and limits.overlapping else 0))


def _tokens_in(job: Job, call: Call) -> int:
    chunks = sum(tokens for owner, tokens in call.chunks if owner is job)
    return chunks + _decodes_in(job, call)


def _decodes_in(job: Job, call: Call) -> int:
    started = job.first_call and job.first_call <= call.number
    return int(bool(started) and call.number < job.first_call + job.decodes)


def _samples_in(job: Job, call: Call) -> int:
    return _decodes_in(job, call) + int(job in call.firsts)


def _plan(call: Call, core: LazyCore) -> StepPlan:
    """Return a call in flight as the plan it would have been."""
    plan = StepPlan(call.number)
    decoding = [job for job in core.running.values() if _decodes_in(job, call)]
    gone = [job for job in call.extra if job.order not in core.running]
    for job in sorted([*decoding, *gone], key=lambda job: job.order):
        plan.scheduled.append((job.state, 1))
        plan.samples.append(job.state)
    for job, tokens in call.chunks:
        plan.scheduled.append((job.state, tokens))
    plan.samples += [job.state for job in call.firsts]
    plan.total_tokens = sum(tokens for _, tokens in plan.scheduled)
    if core.limits.overlapping:
        plan.epochs = [state.preemptions for state, _ in plan.scheduled]
    return plan


def _gone() -> RequestState:
    from twin.request import Request

    return RequestState(Request(-1, 0.0, 1, 1), Status.FINISHED)


_GONE = _gone()
"""Stands for finished requests that the worker has not been told of: only that there are some
matters."""
