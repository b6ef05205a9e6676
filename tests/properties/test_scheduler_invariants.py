"""Invariants of the vLLM scheduler on random policies and workloads, scarce memory included."""

from collections import Counter, deque
from dataclasses import astuple, dataclass, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.properties.effort import examples
from twin.paging.eviction import EVICTION
from twin.request import Request, RequestState, SegmentContent, Status
from twin.scheduling import SchedulerLimits
from twin.scheduling.vllm_v1 import VllmV1Scheduler
from twin.step import StepPlan

SETTINGS = settings(
    max_examples=examples(120),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)


@dataclass(frozen=True)
class Case:
    limits: SchedulerLimits
    requests: tuple[Request, ...]
    arrivals: tuple[int, ...]
    """Schedule call before which each request arrives."""


@st.composite
def cases(draw: Any) -> Case:
    block_size = draw(st.sampled_from([1, 3, 4, 16]))
    longest = draw(st.integers(12, 90))
    needed = -(-longest // block_size)
    chunked = draw(st.booleans())
    seqs = draw(st.integers(1, 8))
    budget = draw(st.integers(seqs, 60)) if chunked else longest + draw(st.integers(0, 40))
    limits = SchedulerLimits(
        max_num_seqs=seqs,
        max_num_batched_tokens=budget,
        max_model_len=longest,
        block_size=block_size,
        num_gpu_blocks=1 + needed + draw(st.integers(0, 2 * needed)),
        enable_prefix_caching=draw(st.booleans()),
        enable_chunked_prefill=chunked,
        long_prefill_token_threshold=draw(st.sampled_from([0, 0, 1, 5, 12])),
        scheduling_policy=draw(st.sampled_from(["fcfs", "priority"])),
        scheduler_reserve_full_isl=draw(st.booleans()),
        watermark=draw(st.sampled_from([0.0, 0.0, 0.05, 0.3])),
        async_scheduling=draw(st.booleans()),
        pipeline_stages=draw(st.sampled_from([1, 1, 2, 3])),
        eviction=draw(st.sampled_from(["lru", *EVICTION])),
    )
    requests = tuple(draw(a_request(index, longest)) for index in range(draw(st.integers(1, 14))))
    if limits.scheduling_policy == "priority" and not limits.scheduler_reserve_full_isl:
        requests = tuple(map(told_apart, requests))
    arrivals = tuple(sorted(draw(st.integers(0, 30)) for _ in requests))
    return Case(limits, requests, arrivals)


@st.composite
def a_request(draw: Any, index: int, longest: int) -> Request:
    prompt = draw(st.integers(1, longest - 1))
    shared = draw(st.integers(0, prompt))
    content = None
    if shared:
        family = draw(st.integers(1, 2))
        content = SegmentContent((family, 100 + index), (shared, prompt + 1))
    return Request(
        index=index,
        arrival_s=float(draw(st.integers(0, 3))),
        prompt_tokens=prompt,
        max_tokens=draw(st.integers(1, longest)),
        stop_after_tokens=draw(st.none() | st.integers(1, longest)),
        content=content,
        priority=draw(st.integers(0, 2)),
    )


def told_apart(request: Request) -> Request:
    """Return the request with an arrival time of its own.

    Of requests equal in priority and arrival vLLM preempts the first one running. Two long
    prompts admitted chunk by chunk may then throw each other out for ever; a clock never gives
    vLLM two equal times.
    """
    return replace(request, arrival_s=request.arrival_s + 1e-6 * request.index)


class Run:
    """Drives a case to its end as the engine core does, checking after every call."""

    def __init__(self, case: Case) -> None:
        self.scheduler = VllmV1Scheduler(case.limits)
        self.states = [RequestState(request) for request in case.requests]
        self.arrivals = deque(zip(case.arrivals, self.states, strict=True))
        self.in_flight: deque[StepPlan] = deque()
        self.delivered: Counter[int] = Counter()
        self.finished: list[int] = []
        self.log: list[Any] = []
        self.known: list[RequestState] = []

    def drive(self) -> "Run":
        scheduler, calls = self.scheduler, 0
        while self.arrivals or self.in_flight or scheduler.has_requests():
            idle = not self.in_flight and not scheduler.has_requests()
            while self.arrivals and (self.arrivals[0][0] <= calls or idle):
                state = self.arrivals.popleft()[1]
                self.known.append(state)
                scheduler.add(state)
                idle = False
            executed = False
            if scheduler.has_requests():
                executed = self.schedule()
                calls += 1
                room = len(self.in_flight) < scheduler.queue_depth
                if room and (executed or scheduler.has_requests()):
                    continue
            if self.in_flight:
                self.update()
            assert calls < 20_000, "the engine makes no progress"
        return self

    def schedule(self) -> bool:
        limits = self.scheduler.limits
        before = {state.request.index: state.preemptions for state in self.known}
        plan = self.scheduler.schedule()
        self.in_flight.append(plan)
        tokens = [tokens for _, tokens in plan.scheduled]
        assert plan.total_tokens == sum(tokens) <= limits.max_num_batched_tokens
        assert all(tokens)
        assert len({id(state) for state, _ in plan.scheduled}) == len(tokens)
        assert self.scheduler.num_running <= limits.max_num_seqs
        assert all(state.preemptions == before[state.request.index] + 1 for state in plan.preempted)
        assert not (plan.preempted and plan.admitted)
        self.log.append([(state.request.index, count) for state, count in plan.scheduled])
        self.check()
        return bool(tokens)

    def update(self) -> None:
        outcome = self.scheduler.update(self.in_flight.popleft())
        self.delivered.update(state.request.index for state in outcome.delivered)
        self.finished += [state.request.index for state in outcome.finished]
        self.log.append([state.request.index for state in outcome.delivered])
        self.check()

    def check(self) -> None:
        pool, scheduler = self.scheduler.core.pool, self.scheduler
        limits, running = scheduler.limits, scheduler.running
        held = Counter(block for state in self.states for block in state.blocks)
        assert 0 not in held
        assert len(held) + scheduler.free_blocks == scheduler.usable_blocks
        order = pool.free_order()
        assert sorted([*order, *held]) == list(range(1, limits.num_gpu_blocks))
        assert pool.references == [held[block] for block in range(limits.num_gpu_blocks)]
        if pool.cache is None:
            assert all(count == 1 for count in held.values())
        else:
            keys = pool.cache.key_of
            assert all(keys[block] is not None for block, count in held.items() if count > 1)
            assert len({id(state) for state in running}) == len(running)
        for state in self.states:
            runs = state.status is Status.RUNNING
            assert runs == any(state is other for other in running)
            if not runs:
                assert not state.blocks
                assert state.num_computed == 0 or state.status is Status.FINISHED
            if runs:
                assert state.num_computed <= len(state.blocks) * limits.block_size
                assert state.num_computed <= state.num_tokens + state.placeholders
                assert state.num_cached_blocks <= len(state.blocks)


@SETTINGS
@given(cases())
def test_blocks_references_and_tokens_are_conserved(case: Case) -> None:
    run = Run(case).drive()
    assert sorted(run.finished) == [request.index for request in case.requests]
    for state in run.states:
        request = state.request
        room = case.limits.max_model_len - request.prompt_tokens
        assert state.status is Status.FINISHED
        assert state.num_output == min(request.output_tokens, room)
        assert run.delivered[request.index] == state.num_output
        stopped = state.num_output == request.stop_after_tokens
        assert state.finish_reason == ("stop" if stopped else "length")
        assert state.in_flight == 0
    assert run.scheduler.free_blocks == run.scheduler.usable_blocks
    assert not run.scheduler.has_requests()


@SETTINGS
@given(cases())
def test_each_request_computes_exactly_its_tokens(case: Case) -> None:
    """Without preemption and hits: prompt and all but the last output, and at most one extra."""
    run = Run(case).drive()
    computed: Counter[int] = Counter()
    for entry in run.log:
        for item in entry:
            if isinstance(item, tuple):
                computed[item[0]] += item[1]
    for state in run.states:
        if state.preemptions:
            continue
        needed = state.num_tokens - 1 - state.cached_tokens
        extra = computed[state.request.index] - needed
        late_stop = case.limits.async_scheduling and state.finish_reason == "stop"
        assert 0 <= extra <= int(late_stop)


@SETTINGS
@given(cases())
def test_the_same_case_gives_the_same_decisions(case: Case) -> None:
    first, second = Run(case).drive(), Run(case).drive()
    assert first.log == second.log
    assert astuple(first.scheduler.prefix) == astuple(second.scheduler.prefix)


@SETTINGS
@given(cases())
def test_every_request_that_fits_is_served(case: Case) -> None:
    fitting = [request for request in case.requests if case.limits.fits(request)]
    assert fitting == list(case.requests)  # the strategy gives memory for one context
    prefix = Run(case).drive().scheduler.prefix
    counted = prefix.requests if case.limits.enable_prefix_caching else len(case.requests)
    assert counted == len(case.requests)
    assert prefix.hits <= prefix.queries
    assert prefix.preempted_hits <= prefix.preempted_queries
