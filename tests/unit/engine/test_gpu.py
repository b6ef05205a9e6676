"""When batches start and end on the stages of a pipeline, by hand."""

import pytest

from twin.engine.gpu import OneStage, Pipeline
from twin.llm.pipeline_timer import PipelineTimer
from twin.llm.step_time import StepTime
from twin.step import BatchShape

X, BACK = 0.25, 0.5


class Takes:
    """A stage on which a batch takes as long as `seconds` says of its decodes."""

    def __init__(self, bound=0, **seconds):
        self.bound, self.seconds = bound, {int(k[1:]): s for k, s in seconds.items()}

    def time(self, shape):
        split = [0.0] * 4
        split[self.bound] = self.seconds[shape.decode_seqs]
        return StepTime(sum(split), self.bound, tuple(split), (0.0, 0.0, sum(split), 0.0))


class Link:
    def __init__(self):
        self.asked = []

    def transfer_s(self, tokens):
        self.asked.append(tokens)
        return X

    def feedback_s(self, sampled):
        return BACK


def decodes(seqs, sampled=None):
    return BatchShape((), seqs, seqs, 1, seqs if sampled is None else sampled, 1)


def pipeline(*stages, feeds_back=False):
    return Pipeline(PipelineTimer(stages, Link()), feeds_back=feeds_back)


def test_one_stage_runs_one_batch_after_another():
    gpus = OneStage(Takes(n1=2.0))
    assert gpus.run(decodes(1), 1.0, 0)[:2] == (1.0, 3.0)
    assert gpus.run(decodes(1), 1.5, 1)[:2] == (3.0, 5.0)
    assert gpus.run(decodes(1), 9.0, 2)[:2] == (9.0, 11.0)
    assert gpus.stages == 1


def test_equal_batches_overlap():
    gpus = pipeline(Takes(n1=1.0), Takes(n1=1.0))
    # Batch 0: [0, 1] then [1.25, 2.25]; batch 1: [1, 2] then [2.25, 3.25]; batch 2 likewise.
    found = [gpus.run(decodes(1), 0.0, call)[:2] for call in range(3)]
    assert found == [(0.0, 2.25), (1.0, 3.25), (2.0, 4.25)]


def test_a_batch_waits_for_the_slower_one_before_it():
    gpus = pipeline(Takes(n1=1.0, n2=4.0), Takes(n1=1.0, n2=4.0), Takes(n1=1.0, n2=4.0))
    assert gpus.run(decodes(2), 0.0, 0)[:2] == (0.0, 12.5)
    # Stage 0 at 4; stage 1 is free at 8.25, stage 2 at 12.5: bubbles of nearly four seconds each.
    assert gpus.run(decodes(1), 0.0, 1)[:2] == (4.0, 13.5)
    assert gpus.run(decodes(1), 20.0, 2)[:2] == (20.0, 23.5)


def test_a_slow_last_stage_sets_the_pace():
    gpus = pipeline(Takes(n1=1.0), Takes(n1=3.0))
    ends = [gpus.run(decodes(1), 0.0, call)[1] for call in range(4)]
    assert ends == [4.25, 7.25, 10.25, 13.25]


def test_the_first_stage_waits_for_sampled_tokens():
    gpus = pipeline(Takes(n1=1.0), Takes(n1=1.0), feeds_back=True)
    assert gpus.run(decodes(1), 0.0, 0)[:2] == (0.0, 2.25)
    assert gpus.run(decodes(1), 0.0, 1)[:2] == (1.0, 3.25)
    # Tokens of call 0 are back at 2.25 + 0.5, those of call 1 at 3.75.
    assert gpus.run(decodes(1), 0.0, 2)[:2] == (2.75, 5.0)
    assert gpus.run(decodes(1), 0.0, 3)[:2] == (3.75, 6.0)


def test_empty_calls_count_and_batches_that_sample_nothing_are_not_waited_for():
    gpus = pipeline(Takes(n1=1.0), Takes(n1=1.0), feeds_back=True)
    gpus.run(decodes(1), 0.0, 0)
    # Call 1 was empty, so two calls before call 3 nothing was sampled.
    assert gpus.run(decodes(1, sampled=0), 0.0, 3)[:2] == (1.0, 3.25)
    assert gpus.run(decodes(1), 0.0, 5)[:2] == (2.0, 4.25)
    assert gpus.run(decodes(1), 0.0, 7)[0] == 4.75


def test_busy_time_is_the_mean_over_the_stages():
    gpus = pipeline(Takes(bound=0, n1=1.0), Takes(bound=1, n1=3.0))
    busy = gpus.run(decodes(1), 0.0, 0)[2]
    assert busy.seconds == pytest.approx(2.0)
    assert busy.by_bound == pytest.approx((0.5, 1.5, 0.0, 0.0))
    assert busy.by_source == pytest.approx((0.0, 0.0, 2.0, 0.0))
    assert busy.bound == 1


def test_a_transfer_is_priced_once():
    link = Link()
    timer = PipelineTimer((Takes(n3=1.0),), link)
    assert [timer.transfer_s(decodes(3)) for _ in range(3)] == [X] * 3
    assert link.asked == [3]
