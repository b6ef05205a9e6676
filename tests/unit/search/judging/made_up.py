"""A judged search of the made-up problem."""

import numpy as np

from tests.unit.search.judging.fake_runs import (
    BUDGET,
    DTYPE,
    GOODPUT,
    ITL,
    SEQS,
    TTFT,
    FakeRuns,
    problem,
)
from twin.search.evaluation import Evaluation
from twin.search.judging.explanation import explain
from twin.search.judging.hardware import HardwareWord
from twin.search.judging.pareto import Tried
from twin.search.judging.report import SearchReport
from twin.search.judging.stretch import stretches
from twin.search.judging.verdict import judge

ASK = HardwareWord(
    False, "The policy is not validated on hardware.", "twin-calibrate validate out/scenario.yaml"
)


def formula(candidate, part):
    """A small budget helps gaps and costs first tokens; few requests at a time cost both."""
    budget, seqs = candidate.get(BUDGET, 2048), candidate.get(SEQS, 256)
    return {
        ITL: 0.020 + 0.00002 * budget,
        TTFT: 0.3 + 400 / budget + 40 / seqs,
        GOODPUT: 1000.0 + seqs,
    }


def violations(candidate, part):
    return {"ttft_s": formula(candidate, part)[TTFT] - 1.2, "unserved": -1.0}


def made_up_runs(**more):
    return FakeRuns(formula, violations, own_noise=0.02, **more)


def report(*objectives, trials=60, title="made-up", runs=None):
    """A search by random draws."""
    runs = runs or made_up_runs()
    asked = problem(*objectives)
    rng = np.random.default_rng(1)
    candidates = [{}]
    while len(candidates) < trials:
        drawn = {
            SEQS: int(2 ** rng.integers(5, 10)),
            BUDGET: int(2 ** rng.integers(8, 14)),
            DTYPE: str(rng.choice(["auto", "fp8"])),
        }
        candidates.append({k: v for k, v in drawn.items() if v != asked.defaults[k]})
    found = runs.tried(*candidates)
    found.append(Tried(len(found), Evaluation({SEQS: 4096}, infeasible="9 GPUs are too many")))
    judgement = judge(asked, found, runs, experts=False)
    return SearchReport(
        problem=asked,
        trials=found,
        judgement=judgement,
        explanation=explain(asked, found, judgement, runs, experts=False),
        hardware=ASK,
        title=title,
        command="twin search made-up",
        notes=("Every figure here is made up.",),
        pruned=3,
        stretches=stretches(found, judgement.shown, runs),
    )
