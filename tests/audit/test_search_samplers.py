"""NSGA-II against random draws, equal trials, on a small real problem with two objectives."""

from pathlib import Path

import pytest

from tests.audit import records
from tests.hypervolume import losses, relative_hypervolumes
from twin.search.evaluate import Evaluator
from twin.search.piece import SEARCH
from twin.search.problem import Limits
from twin.search.setting import make_problem
from twin.search.study import coordinator
from twin.search.study.options import StudyOptions

pytestmark = pytest.mark.audit

SEEDS = 10
TRIALS = 200
OBJECTIVES = ("goodput_per_gpu_hour", "p99_ttft_s")
# A burst on up to four H100: fewer GPUs serve more a GPU-hour, more of them answer sooner.
CHANGES = {
    "workload.num_requests": 60,
    "workload.arrivals.rate": 30,
    "slo": {"ttft_s": 60, "tpot_s": 1.0, "percentile": 99},
}


class Shared:
    """An evaluator of all studies: equal candidates are simulated once."""

    def __init__(self, problem):
        self.inner = Evaluator(problem)

    def __call__(self, problem):
        return self

    def evaluate(self, candidate, piece=SEARCH):
        return self.inner.evaluate(candidate, piece)


def test_nsga2_dominates_more_than_random_draws_on_8_of_10_seeds(tmp_path, monkeypatch):
    problem = make_problem(
        "chat-h100", CHANGES, engine="vllm", objectives=OBJECTIVES, limits=Limits(gpus=4)
    )
    monkeypatch.setattr(coordinator, "Evaluator", Shared(problem))
    runs = {}
    for seed in range(SEEDS):
        for sampler in ("nsga2", "random"):
            out = Path(tmp_path / f"{sampler}-{seed}")
            options = StudyOptions(out=out, trials=TRIALS, sampler=sampler, seed=seed)
            result = coordinator.run_study(problem, options)
            assert len(result.trials) == TRIALS
            runs[sampler, seed] = losses(result.complete, OBJECTIVES)
    shares = relative_hypervolumes(runs)
    pairs = [(shares["nsga2", seed], shares["random", seed]) for seed in range(SEEDS)]
    wins = sum(nsga2 > random for nsga2, random in pairs)
    records.write(
        "search-samplers",
        {"trials": TRIALS, "wins": wins, "seeds": SEEDS,
         "nsga2": [round(pair[0], 4) for pair in pairs],
         "random": [round(pair[1], 4) for pair in pairs]},
    )  # fmt: skip
    assert wins >= 8, pairs
