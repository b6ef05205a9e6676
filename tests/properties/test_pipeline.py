"""Pipeline stages on random batches and whole random runs."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hwmodels.host import HostCosts
from tests.properties.effort import examples
from tests.unit.engine import support
from twin.engine.gpu import OneStage, Pipeline
from twin.engine.result import FINISHED
from twin.llm.pipeline_timer import PipelineTimer
from twin.llm.step_time import StepTime
from twin.request import Request
from twin.step import BatchShape

HOST = HostCosts(0.01, 0.001, 0.01, 0.001, 0.002, 0.05, source="test")
seconds = st.sampled_from([0.0, 0.125, 0.5, 1.0, 3.0])


class Recorded:
    """A stage that keeps its batches' times from a list and says when it ran them."""

    def __init__(self, times):
        self.times = times

    def time(self, shape):
        taken = self.times[shape.decode_kv_tokens]
        return StepTime(taken, 0, (taken, 0.0, 0.0, 0.0), (taken, 0.0, 0.0, 0.0))


class Link:
    def __init__(self, transfer_s):
        self.seconds = transfer_s

    def transfer_s(self, tokens):
        return self.seconds

    def feedback_s(self, sampled_seqs):
        return self.seconds


def batch(number, sampled):
    return BatchShape((), 1, number, number, int(sampled), number)


@st.composite
def batches(draw):
    count, stages = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    times = [[draw(seconds) for _ in range(count)] for _ in range(stages)]
    launches = np.cumsum([draw(seconds) for _ in range(count)]).tolist()
    sampled = [draw(st.booleans()) for _ in range(count)]
    return times, launches, sampled, draw(seconds)


def by_definition(times, launches, sampled, transfer_s, *, feeds_back):
    """Start and end of every batch on every stage, straight from the recurrences."""
    stages, spans = len(times), []
    for number, launched_s in enumerate(launches):
        rows = []
        for stage in range(stages):
            ready_s = rows[-1][1] + transfer_s if stage else launched_s
            if not stage and feeds_back and number >= stages and sampled[number - stages]:
                ready_s = max(ready_s, spans[number - stages][-1][1] + transfer_s)
            start_s = max(ready_s, spans[-1][stage][1] if spans else 0.0)
            rows.append((start_s, start_s + times[stage][number]))
        spans.append(rows)
    return spans


@settings(max_examples=examples(150), deadline=None)
@given(batches(), st.booleans())
def test_stages_never_overlap_with_themselves_and_keep_the_order(case, feeds_back):
    times, launches, sampled, transfer_s = case
    spans = by_definition(*case, feeds_back=feeds_back)
    for rows in spans:
        assert all(after[0] >= before[1] for before, after in pairwise(rows))
    for before, after in pairwise(spans):
        assert all(b[0] >= a[1] for a, b in zip(before, after, strict=True))
    timer = PipelineTimer([Recorded(row) for row in times], Link(transfer_s))
    gpus = Pipeline(timer, feeds_back=feeds_back)
    for number, rows in enumerate(spans):
        shape = batch(number, sampled[number])
        start_s, end_s, busy = gpus.run(shape, launches[number], number)
        assert (start_s, end_s) == (rows[0][0], rows[-1][1])
        assert abs(busy.seconds * len(times) - sum(row[number] for row in times)) < 1e-9


@settings(max_examples=examples(80), deadline=None)
@given(batches())
def test_a_pipeline_of_one_stage_is_no_pipeline(case):
    times, launches, sampled, transfer_s = case
    plain = OneStage(Recorded(times[0]))
    piped = Pipeline(PipelineTimer([Recorded(times[0])], Link(transfer_s)), feeds_back=False)
    for number, launched_s in enumerate(launches):
        shape = batch(number, sampled[number])
        assert plain.run(shape, launched_s, number) == piped.run(shape, launched_s, number)


@st.composite
def loads(draw):
    requests = [
        Request(
            index=index,
            arrival_s=float(draw(st.integers(0, 20))),
            prompt_tokens=draw(st.integers(1, 120)),
            max_tokens=draw(st.integers(1, 40)),
            stop_after_tokens=draw(st.none() | st.integers(1, 40)),
        )
        for index in range(draw(st.integers(1, 14)))
    ]
    return sorted(requests, key=lambda request: request.arrival_s)


def numbered(requests):
    return [
        Request(index, r.arrival_s, r.prompt_tokens, r.max_tokens, r.stop_after_tokens)
        for index, r in enumerate(requests)
    ]


@settings(max_examples=examples(80), deadline=None)
@given(
    loads(),
    st.lists(st.sampled_from([0.25, 0.5, 1.0]), min_size=2, max_size=4),
    st.booleans(),
    st.sampled_from([16, 64, 512]),
    st.sampled_from([12, 30, 257]),
)
def test_tokens_are_conserved_and_gpus_never_more_than_busy(
    requests, stage_s, asynchronous, budget, blocks
):
    requests = numbered(requests)
    engine, replicas, clock = support.run(
        support.ListSource(requests),
        host=HOST,
        stage_s=stage_s,
        async_scheduling=asynchronous,
        max_num_batched_tokens=budget,
        num_gpu_blocks=blocks,
    )
    table, steps = engine.requests.table(), engine.steps.table()
    assert np.all(table.outcome == FINISHED)
    wanted = [request.output_tokens for request in requests]
    assert table.output_tokens.tolist() == wanted
    assert np.all(np.array(engine.requests.itl_s) > 0)
    assert replicas[0].scheduler.free_blocks == replicas[0].scheduler.usable_blocks
    assert np.all(np.diff(steps.start_s) >= 0)
    assert np.all(np.diff(steps.end_s) >= 0)
    assert np.all(steps.busy_s * len(stage_s) <= steps.end_s - steps.start_s + 1e-9)
    assert steps.busy_s.sum() <= clock.now
    if not table.preemptions.any():
        computed = int((steps.prefill_tokens + steps.decode_tokens).sum())
        needed = int((table.prompt_tokens + table.output_tokens - 1).sum())
        assert needed <= computed <= needed + len(requests)


@settings(max_examples=examples(25), deadline=None)
@given(
    st.lists(st.sampled_from([0.25, 0.5, 1.0]), min_size=2, max_size=4),
    st.booleans(),
)
def test_with_ample_requests_the_slowest_stage_sets_the_pace(stage_s, asynchronous):
    """As many batches as stages, and one more for what hides between them, keep it busy."""
    groups = len(stage_s)
    requests = [
        Request(index, 0.0, prompt_tokens=16, max_tokens=200) for index in range(4 * groups)
    ]
    engine, _, _ = support.run(
        support.ListSource(requests),
        stage_s=stage_s,
        async_scheduling=asynchronous,
        # Four prompts a step: as many groups of requests as stages.
        max_num_batched_tokens=64,
        max_num_seqs=4 * groups,
        num_gpu_blocks=2000,
    )
    steps = engine.steps.table()
    start_s = steps.start_s
    middle = slice(len(steps) // 4, 3 * len(steps) // 4)
    pace_s = float(np.diff(start_s)[middle].mean())
    # A group comes back after all stages, so that is the least between its steps.
    round_s = max(groups * max(stage_s), sum(stage_s))
    assert abs(pace_s - round_s / groups) < 0.01 * round_s
    assert abs(pace_s - max(stage_s)) < 0.01
