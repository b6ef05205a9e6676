"""Studies whose candidates are judged by a formula instead of a simulation."""

from dataclasses import dataclass, field
from pathlib import Path

from tests.search_runs import small_problem
from twin.search.evaluation import Evaluation
from twin.search.piece import SEARCH
from twin.search.study import coordinator
from twin.search.study.options import StudyOptions

PROBLEM = small_problem()
TWO = small_problem(objectives=("p99_ttft_s", "p99_itl_s"))


def formula(candidate, share=1.0, objectives=("p99_ttft_s",)):
    """Figures that depend on every knob, on the share a little, and are infeasible at times."""
    text = repr(sorted(candidate.items()))
    code = sum(ord(letter) * (at % 7 + 1) for at, letter in enumerate(text)) % 1000
    if code % 11 == 10:
        return Evaluation(candidate, infeasible=f"code {code}")
    seqs = candidate.get("policy.max_num_seqs", 1024)
    values = (code / 1000 + 0.1 * share, 1024 / seqs)
    found = dict(zip(objectives, values, strict=False))
    return Evaluation(candidate, found, {"ttft_s": 0.2 - code / 1000}, {"code": code})


@dataclass
class Formula:
    """Stands in for an `Evaluator`; raises what `break_at` holds for the how-manieth call."""

    problem: object
    break_at: dict = field(default_factory=dict)
    calls: int = 0

    def evaluate(self, candidate, piece=SEARCH):
        self.calls += 1
        if self.calls in self.break_at:
            raise self.break_at[self.calls]
        return formula(candidate, piece.share, self.problem.objectives)


def run(out, monkeypatch, problem=PROBLEM, break_at=None, **options):
    """Run a study in this process; returns its result."""
    monkeypatch.setattr(coordinator, "Evaluator", lambda p: Formula(p, break_at or {}))
    return coordinator.run_study(problem, StudyOptions(out=Path(out), **options))


def told(result):
    """What has to be the same in equal studies."""
    return [
        (t.number, t.state, t.reason, t.share, dict(t.candidate), dict(t.evaluation.objectives))
        for t in result.trials
    ]
