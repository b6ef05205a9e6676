"""Invariants of TensorRT-LLM's scheduler on random policies and workloads, memory scarce."""

from collections import Counter, deque
from dataclasses import astuple, dataclass, replace
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from twin.request import Request, RequestState, SegmentContent, Status
from twin.scheduling.trtllm import TrtllmLimits, TrtllmScheduler
from twin.scheduling.trtllm.siblings import Siblings, prefix_key
from twin.step import StepPlan

SETTINGS = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
POLICIES = ("GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH")


@dataclass(frozen=True)
class Case:
    limits: TrtllmLimits
    requests: tuple[Request, ...]
    arrivals: tuple[int, ...]
    """Schedule call before which each request arrives."""


@st.composite
def cases(draw: Any, policies: tuple[str, ...] = POLICIES) -> Case:
    block_size = draw(st.sampled_from([1, 3, 4, 16]))
    longest = draw(st.integers(12, 90))
    needed = -(-longest // block_size)
    chunked = draw(st.booleans())
    # Without chunking only the prompts must fit into a step; after a pause they may be longer.
    longest_prompt = longest - 1 if chunked else draw(st.integers(1, longest - 1))
    least_budget = block_size if chunked else longest_prompt
    budget = least_budget + draw(st.integers(0, 50))
    limits = TrtllmLimits(
        max_batch_size=draw(st.integers(1, 8)),
        max_num_tokens=budget,
        max_seq_len=longest,
        tokens_per_block=block_size,
        num_blocks=1 + needed + draw(st.integers(0, needed)),
        capacity_scheduler_policy=draw(st.sampled_from(policies)),
        enable_chunked_prefill=chunked,
        context_chunking_policy=draw(
            st.sampled_from(["FIRST_COME_FIRST_SERVED", "EQUAL_PROGRESS"])
        ),
        enable_block_reuse=draw(st.booleans()),
        enable_partial_reuse=draw(st.booleans()),
        copy_on_partial_reuse=draw(st.booleans()),
        enable_prefix_aware_scheduling=draw(st.booleans()),
        overlap=draw(st.booleans()),
        batch_wait_timeout_iters=draw(st.sampled_from([0, 2, 7])),
        batch_wait_max_tokens_ratio=draw(st.sampled_from([0.0, 0.3, 0.9])),
        stratum=draw(st.sampled_from(["early", "main"])),
        cuda_graph_dummy_block=draw(st.booleans()),
    )
    requests = tuple(
        draw(a_request(index, longest, longest_prompt)) for index in range(draw(st.integers(1, 14)))
    )
    arrivals = tuple(sorted(draw(st.integers(0, 30)) for _ in requests))
    return Case(limits, requests, arrivals)


@st.composite
def a_request(draw: Any, index: int, longest: int, longest_prompt: int) -> Request:
    prompt = draw(st.integers(1, longest_prompt))
    shared = draw(st.integers(0, prompt))
    content = None
    if shared:
        family = draw(st.integers(1, 2))
        content = SegmentContent((family, 100 + index), (shared, prompt + 1))
    return Request(
        index=index,
        arrival_s=float(index),
        prompt_tokens=prompt,
        max_tokens=draw(st.integers(1, longest)),
        stop_after_tokens=draw(st.none() | st.integers(1, longest)),
        content=content,
    )


class Run:
    """Drives a case to its end as the executor does, checking after every call."""

    def __init__(self, case: Case) -> None:
        self.scheduler = TrtllmScheduler(case.limits)
        self.states = [RequestState(request) for request in case.requests]
        self.arrivals = deque(zip(case.arrivals, self.states, strict=True))
        self.in_flight: deque[StepPlan] = deque()
        self.delivered: Counter[int] = Counter()
        self.discarded: Counter[int] = Counter()
        self.computed: Counter[int] = Counter()
        self.finished: list[int] = []
        self.log: list[Any] = []
        self.paused_now: list[RequestState] = []

    def drive(self) -> "Run":
        scheduler, calls = self.scheduler, 0
        while self.arrivals or self.in_flight or scheduler.has_requests():
            idle = not self.in_flight and not scheduler.has_requests()
            while self.arrivals and (self.arrivals[0][0] <= calls or idle):
                scheduler.add(self.arrivals.popleft()[1])
                idle = False
            executed = False
            if scheduler.has_requests():
                executed = self.schedule()
                calls += 1
                if executed and len(self.in_flight) < scheduler.queue_depth:
                    continue
            if self.in_flight:
                self.update()
            assert calls < 20_000, "the engine makes no progress"
        return self

    def schedule(self) -> bool:
        limits = self.scheduler.limits
        plan = self.scheduler.schedule()
        tokens = [tokens for _, tokens in plan.scheduled]
        assert plan.total_tokens == sum(tokens) <= limits.max_num_tokens
        assert all(tokens)
        assert len(tokens) <= limits.max_batch_size
        assert len({id(state) for state, _ in plan.scheduled}) == len(tokens)
        assert len(self.scheduler.active) <= limits.max_batch_size
        self.check_order(plan)
        self.check_readmission(plan)
        for state, count in plan.scheduled:
            self.computed[state.request.index] += count
        self.log.append([(state.request.index, count) for state, count in plan.scheduled])
        if tokens:
            self.in_flight.append(plan)
        else:
            assert not plan.samples
        self.check()
        return bool(tokens)

    def check_order(self, plan: StepPlan) -> None:
        """Chunks that do not end their prompt, those that do, generations."""
        prompts = {a.state.request.index: a.context_tokens for a in self.scheduler.active}
        samples = {id(state) for state in plan.samples}

        def kind(state: RequestState, tokens: int) -> int:
            if state.num_computed - tokens >= prompts[state.request.index]:
                return 2
            return int(id(state) in samples)

        kinds = [kind(state, tokens) for state, tokens in plan.scheduled]
        assert kinds == sorted(kinds)

    def check_readmission(self, plan: StepPlan) -> None:
        """Whoever is admitted later than a paused one arrived does not overtake it."""
        if self.scheduler.limits.capacity_scheduler_policy != "MAX_UTILIZATION":
            assert not plan.preempted
        if self.scheduler.limits.enable_block_reuse:
            return  # a deferred context may be overtaken
        paused = [s.request.index for s in self.states if s.status is Status.PREEMPTED]
        for state, _ in plan.admitted:
            # Running ones behind the paused one may exist; new ones may not start.
            if not state.preemptions:
                assert not [index for index in paused if index < state.request.index]

    def update(self) -> None:
        outcome = self.scheduler.update(self.in_flight.popleft())
        self.delivered.update(state.request.index for state in outcome.delivered)
        self.discarded.update(state.request.index for state in outcome.discarded)
        self.finished += [state.request.index for state in outcome.finished]
        self.log.append([state.request.index for state in outcome.delivered])
        self.check()

    def check(self) -> None:
        kv, limits = self.scheduler.kv, self.scheduler.limits
        held = Counter(block for state in self.states for block in state.blocks)
        assert sorted([*kv.free_order(), *held]) == list(range(kv.usable))
        assert kv.num_free == len(kv.free_order())
        assert kv.references == [held[block] for block in range(kv.usable)]
        if kv.tree is None:
            assert all(count == 1 for count in held.values())
        else:
            assert all(block in kv.tree for block, count in held.items() if count > 1)
        holding = sum(1 for state in self.states if state.blocks)
        assert self.scheduler.num_running == holding
        for state in self.states:
            assert bool(state.blocks) == (state.status is Status.RUNNING)
            if state.status is Status.RUNNING:
                assert state.num_computed <= len(state.blocks) * limits.tokens_per_block
                assert state.num_computed <= state.num_tokens + state.placeholders


@SETTINGS
@given(cases())
def test_blocks_are_conserved_and_delivered_is_what_was_asked(case: Case) -> None:
    run = Run(case).drive()
    assert sorted(run.finished) == [request.index for request in case.requests]
    for state in run.states:
        request = state.request
        room = case.limits.max_seq_len - request.prompt_tokens
        assert state.status is Status.FINISHED
        assert run.delivered[request.index] == state.num_output
        assert state.num_output == min(request.output_tokens, room)
        stopped = state.num_output == request.stop_after_tokens
        assert state.finish_reason == ("stop" if stopped else "length")
    assert run.scheduler.free_blocks == run.scheduler.usable_blocks
    assert run.scheduler.num_running == run.scheduler.num_waiting == 0


@SETTINGS
@given(cases(("GUARANTEED_NO_EVICT", "STATIC_BATCH")))
def test_nobody_is_paused_and_each_token_is_computed_once(case: Case) -> None:
    """Prompt beyond the hit and all but the last output; one more after a stop found late."""
    run = Run(case).drive()
    for state in run.states:
        assert state.preemptions == 0
        needed = state.num_tokens - 1 - state.cached_tokens
        extra = run.computed[state.request.index] - needed
        foreseen = state.num_output == case.limits.foreseen_output(state.request)
        assert extra == int(case.limits.overlap and not foreseen)
        assert run.discarded[state.request.index] == extra


@SETTINGS
@given(cases(("MAX_UTILIZATION",)))
def test_paused_requests_lose_nothing(case: Case) -> None:
    run = Run(case).drive()
    for state in run.states:
        wasted = run.discarded[state.request.index]
        assert wasted <= int(case.limits.overlap)
        if not state.preemptions:
            needed = state.num_tokens - 1 - state.cached_tokens
            assert run.computed[state.request.index] == needed + wasted


@SETTINGS
@given(cases())
def test_the_same_case_gives_the_same_decisions(case: Case) -> None:
    first, second = Run(case).drive(), Run(case).drive()
    assert first.log == second.log
    assert first.scheduler.kv.free_order() == second.scheduler.kv.free_order()
    assert astuple(first.scheduler.prefix) == astuple(second.scheduler.prefix)


@SETTINGS
@given(cases())
def test_hits_never_cover_a_whole_prompt_and_partial_reuse_only_adds(case: Case) -> None:
    run = Run(case).drive()
    prefix = run.scheduler.prefix
    for state in run.states:
        assert 0 <= state.cached_tokens < state.request.prompt_tokens
        if not case.limits.enable_partial_reuse:
            assert state.cached_tokens % case.limits.tokens_per_block == 0
    assert prefix.hits == sum(state.cached_tokens for state in run.states)
    if not case.limits.enable_block_reuse:
        assert prefix.queries == prefix.hits == 0


@SETTINGS
@given(cases(("MAX_UTILIZATION",)), st.integers(1, 3))
def test_ample_memory_pauses_nobody(case: Case, spare: int) -> None:
    blocks = spare + sum(case.limits.blocks_to_completion(request) for request in case.requests)
    ample = replace(case, limits=replace(case.limits, num_blocks=blocks + 1))
    assert all(state.preemptions == 0 for state in Run(ample).drive().states)


@st.composite
def contents(draw: Any) -> list[tuple[Request, int]]:
    """Requests that share 4 + 1 tokens, then part ways at random, and how much a block holds."""
    made = []
    for index in range(draw(st.integers(1, 8))):
        cuts = sorted(draw(st.sets(st.integers(5, 12), max_size=3)))
        ids = [1]
        for cut in cuts:  # chained: an id stands for all before it too
            ids.append(hash((ids[-1], cut, draw(st.integers(0, 1)))) % 10**6)
        content = SegmentContent(tuple(ids), (*cuts, 99))
        made.append((Request(index, 0.0, 50, 1, content=content), draw(st.integers(1, 8))))
    return made


@SETTINGS
@given(contents(), contents(), st.integers(1, 8), st.data())
def test_bisection_finds_what_comparing_every_block_finds(
    stored: list[tuple[Request, int]],
    asking: list[tuple[Request, int]],
    most: int,
    data: Any,
) -> None:
    siblings = Siblings(4)
    alive: dict[int, tuple[Request, int]] = {}
    for block, (request, filled) in enumerate(stored):
        siblings.add(block, request, filled)
        alive[block] = (request, filled)
        if data.draw(st.booleans()):
            siblings.longest_match(asking[0][0], most, None)  # builds an index midway
        if data.draw(st.integers(0, 3)) == 0:
            siblings.remove(block)
            del alive[block]
    for request, _ in asking:
        common = {
            block: max(
                length
                for length in range(min(filled, most) + 1)
                if prefix_key(other, 4 + length) == prefix_key(request, 4 + length)
            )
            for block, (other, filled) in alive.items()
        }
        longest = max(common.values(), default=0)
        found = siblings.longest_match(request, most, None)
        if not longest:
            assert found is None
        else:
            assert found == (min(b for b, n in common.items() if n == longest), longest)
