"""Invariants of the SGLang scheduler on random policies and workloads, scarce memory included."""

from collections import Counter, deque
from dataclasses import astuple, dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twin.request import Request, RequestState, SegmentContent, Status
from twin.scheduling.sglang import SglangLimits, SglangScheduler
from twin.scheduling.sglang.job import Job
from twin.scheduling.sglang.validation import EVICTION_POLICIES, SCHEDULE_POLICIES
from twin.step import StepPlan

SETTINGS = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@dataclass(frozen=True)
class Case:
    limits: SglangLimits
    requests: tuple[Request, ...]
    arrivals: tuple[int, ...]
    """Turn before which each request arrives."""


@st.composite
def cases(draw: Any, **fixed: Any) -> Case:
    page = draw(st.sampled_from([1, 1, 4, 16]))
    context = draw(st.integers(30, 160))
    caching = draw(st.booleans())
    policies = [name for name in SCHEDULE_POLICIES if caching or name != "shortest-prefill-first"]
    values: dict[str, Any] = {
        "max_total_num_tokens": context + 2 * page + draw(st.integers(0, 3 * context)),
        "context_length": context,
        "max_running_requests": draw(st.integers(1, 8)),
        "page_size": page,
        "chunked_prefill_size": draw(st.sampled_from([-1, 16, 32, 48, 128])),
        "max_prefill_tokens": draw(st.integers(16, 200)),
        "prefill_max_requests": draw(st.none() | st.integers(1, 3)),
        "schedule_policy": draw(st.sampled_from(policies)),
        "schedule_conservativeness": draw(st.sampled_from([0.0, 0.05, 0.3, 1.0])),
        "disable_radix_cache": not caching,
        "enable_mixed_chunk": draw(st.booleans()),
        "radix_eviction_policy": draw(st.sampled_from(EVICTION_POLICIES)),
        "tlru_threshold": 20,
        "retraction_policy": draw(st.sampled_from(["length", "priority"])),
        "enable_priority_scheduling": draw(st.booleans()),
        "priority_scheduling_preemption_threshold": draw(st.integers(0, 1)),
        "overlap": draw(st.booleans()),
        "radix_key_tokens": draw(st.sampled_from([0, 0, 16, 32])),
    }
    limits = SglangLimits(**{**values, **fixed})
    requests = tuple(draw(a_request(index, context)) for index in range(draw(st.integers(1, 14))))
    arrivals = tuple(sorted(draw(st.integers(0, 40)) for _ in requests))
    return Case(limits, requests, arrivals)


@st.composite
def a_request(draw: Any, index: int, longest: int) -> Request:
    prompt = draw(st.integers(1, longest - 1))
    shared = draw(st.integers(0, prompt))
    content = None
    if shared:
        family = draw(st.integers(1, 2))
        content = SegmentContent((family, 100 + index), (shared, prompt + 1))
    ignore_eos = draw(st.booleans())
    return Request(
        index=index,
        arrival_s=0.0,
        prompt_tokens=prompt,
        max_tokens=draw(st.integers(1, longest)),
        stop_after_tokens=None if ignore_eos else draw(st.none() | st.integers(1, longest)),
        content=content,
        priority=draw(st.integers(0, 2)),
        ignore_eos=ignore_eos,
    )


class Run:
    """Drives a case to its end as the engine loop does, checking after every call."""

    def __init__(self, case: Case) -> None:
        self.scheduler = SglangScheduler(case.limits)
        self.core = self.scheduler.core
        self.states = [RequestState(request) for request in case.requests]
        pairs = zip(case.arrivals, self.states, strict=True)
        fitting = [pair for pair in pairs if case.limits.fits(pair[1].request)]
        self.taken = [state for _, state in fitting]
        self.arrivals = deque(fitting)
        self.in_flight: deque[StepPlan] = deque()
        self.delivered: Counter[int] = Counter()
        self.finished: list[int] = []
        self.log: list[Any] = []
        self.jobs: set[Job] = set()

    def drive(self) -> "Run":
        scheduler, turns = self.scheduler, 0
        while self.arrivals or self.in_flight or scheduler.has_requests():
            idle = not self.in_flight and not scheduler.has_requests()
            while self.arrivals and (self.arrivals[0][0] <= turns or idle):
                scheduler.add(self.arrivals.popleft()[1])
                idle = False
            self.jobs |= set(self.core.waiting)
            if scheduler.has_requests():
                launched = self.schedule()
                turns += 1
                if launched and len(self.in_flight) < scheduler.queue_depth:
                    continue
            if self.in_flight:
                self.update()
            assert turns < 20_000, "the scheduler makes no progress"
        return self

    def schedule(self) -> bool:
        limits = self.scheduler.limits
        before = {state.request.index: state.preemptions for state in self.taken}
        plan = self.scheduler.schedule()
        tokens = [tokens for _, tokens in plan.scheduled]
        assert plan.total_tokens == sum(tokens)
        assert all(tokens)
        assert len({id(state) for state, _ in plan.scheduled}) == len(tokens)
        assert all(state.preemptions == before[state.request.index] + 1 for state in plan.preempted)
        assert len(self.core.running) <= limits.max_running_requests
        self.log.append([(state.request.index, count) for state, count in plan.scheduled])
        self.check_memory()
        if plan.total_tokens:
            self.in_flight.append(plan)
        return bool(plan.total_tokens)

    def update(self) -> None:
        outcome = self.scheduler.update(self.in_flight.popleft())
        for state in outcome.delivered:
            self.delivered[state.request.index] += 1
        for state in outcome.finished:
            self.finished.append(state.request.index)
            assert state.status is Status.FINISHED
        self.log.append([state.request.index for state in outcome.finished])
        self.check_memory()

    def check_memory(self) -> None:
        """Every token is free, in the tree, or one job's own; locks are those of the jobs."""
        cache, limits = self.core.cache, self.scheduler.limits
        tree = cache.tree
        holding = [job for job in self.jobs if job.holds_row]
        own = sum(limits.ceil_page(job.state.num_computed) - job.protected for job in holding)
        assert cache.free >= 0
        assert cache.free + tree.evictable + tree.protected + own == limits.pool_tokens
        assert cache.rows_free == limits.max_running_requests - len(holding)
        assert cache.rows_free >= 0
        locks: Counter[Any] = Counter()
        for job in holding:
            node = job.lock
            while node is not None and node.parent is not None:
                locks[node] += 1
                node = node.parent
        in_tree = list(tree.nodes())
        assert all(node.locks == locks[node] for node in in_tree)
        size = limits.key_tokens
        locked = sum(len(node.keys) * size for node in in_tree if node.locks)
        assert tree.protected == locked
        assert tree.evictable == sum(len(node.keys) * size for node in in_tree) - locked


def check_ends(case: Case, run: Run) -> None:
    core = run.core
    assert sorted(run.finished) == sorted(state.request.index for state in run.taken)
    for state in run.taken:
        limit = max(1, case.limits.max_new_tokens(state.request))
        stop = state.request.stop_after_tokens
        outputs = limit if stop is None else min(limit, stop)
        assert state.num_output == outputs == run.delivered[state.request.index]
        assert state.finish_reason == ("stop" if outputs == stop else "length")
    assert not core.waiting
    assert not core.running
    assert core.chunked is None
    assert not core.launches
    assert core.cache.available == case.limits.pool_tokens
    assert core.ratio.now == core.ratio.init
    assert (run.scheduler.num_running, run.scheduler.num_waiting) == (0, 0)
    assert run.scheduler.free_blocks == run.scheduler.usable_blocks


@SETTINGS
@given(cases())
def test_nothing_is_lost_and_every_token_is_somewhere(case: Case) -> None:
    check_ends(case, Run(case).drive())


@SETTINGS
@given(cases())
def test_the_same_case_runs_the_same_way(case: Case) -> None:
    first, second = Run(case).drive(), Run(case).drive()
    assert first.log == second.log
    assert astuple(first.scheduler.prefix) == astuple(second.scheduler.prefix)


@SETTINGS
@given(cases(disable_radix_cache=True, schedule_policy="fcfs"))
def test_without_the_cache_nothing_is_ever_hit(case: Case) -> None:
    run = Run(case).drive()
    assert run.scheduler.prefix.hits == run.scheduler.prefix.preempted_hits == 0
    assert run.core.cache.free == case.limits.pool_tokens


@SETTINGS
@given(cases(page_size=16, chunked_prefill_size=48, radix_key_tokens=16))
def test_a_key_of_a_page_is_the_exact_tree(case: Case) -> None:
    exact = {name: getattr(case.limits, name) for name in SglangLimits.__slots__}
    exact["radix_key_tokens"] = 0
    other = Case(SglangLimits(**exact), case.requests, case.arrivals)
    assert Run(case).drive().log == Run(other).drive().log
