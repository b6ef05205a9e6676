"""A run of decode steps in arrays is what `StepTimer.time` says step by step."""

import random

import numpy as np
import pytest

from hwmodels.gpus import GPUS
from hwmodels.roofline import RooflineCostModel
from twin.llm.cuda_graphs import capture_sizes
from twin.llm.decode_run import DecodeRun
from twin.llm.lowering import Precision
from twin.llm.models import find_model
from twin.llm.op_sum import BOUNDS
from twin.llm.step_time import StepTimer
from twin.step import BatchShape


def timer(gpu, **more):
    arch = find_model("llama-3.1-8b")
    sizes = capture_sizes(256, 8192)
    return StepTimer(
        RooflineCostModel(GPUS[gpu]), arch, Precision(), 1, capture_sizes=sizes, **more
    )


@pytest.mark.parametrize("gpu", ["h100_sxm", "a100_sxm"])
@pytest.mark.parametrize("eager", [False, True])
def test_equals_the_steps(gpu, eager):
    timing, rng = timer(gpu, eager=eager), random.Random(3)
    for _ in range(40):
        seqs, steps = rng.choice((1, 7, 64, 300)), rng.choice((1, 5, 60, 700))
        first_kv = seqs * rng.randint(1, 3000)
        run = DecodeRun(timing, seqs, first_kv, steps)
        plain = [
            timing.time(BatchShape((), seqs, first_kv + step * seqs, 0, seqs))
            for step in range(steps)
        ]
        assert run.seconds.tolist() == [time.seconds for time in plain]
        kept = rng.randint(1, steps)
        bounds = np.broadcast_to(run.bound(kept), kept).tolist()
        assert bounds == [time.bound for time in plain[:kept]]
        sums = [sum(time.by_source[i] for time in plain[:kept]) for i in range(4)]
        assert run.by_source(kept) == pytest.approx(sums, rel=1e-9)


def test_what_limits_may_change_within_a_run():
    timing = timer("h100_sxm", eager=True)
    run = DecodeRun(timing, 64, 64 * 1000, 60_000)
    seen = {BOUNDS[bound].value for bound in np.unique(run.bound(60_000)).tolist()}
    assert seen == {"launch", "hbm"}
