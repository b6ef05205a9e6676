"""`SearchReport`: all that a search's page, terminal summary and JSON tell."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from twin.search.judging.confirm import Confirmation
from twin.search.judging.error_of_difference import stands_in
from twin.search.judging.explanation import Explanation
from twin.search.judging.hardware import HardwareWord
from twin.search.judging.importance import Importance
from twin.search.judging.pareto import Tried
from twin.search.judging.stretch import Stretch
from twin.search.judging.verdict import Judgement
from twin.search.objectives import OBJECTIVES, Objective
from twin.search.problem import SearchProblem

SEARCH_SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class SearchReport:
    """A search, judged and explained.

    Attributes:
        problem: what was searched.
        trials: those over the whole of the search part, by number, and the infeasible ones.
        judgement: what to believe.
        explanation: what else was seen.
        hardware: what a GPU has said of the recommended policy.
        title: of the page.
        command: how the search was started; None: not by a command.
        notes: caveats of the search and of its forecasts, one sentence each.
        pruned: trials that were stopped early.
        stretches: how long the runs are that figures are of, by `stretch.STRETCHES`.
    """

    problem: SearchProblem
    trials: Sequence[Tried]
    judgement: Judgement
    explanation: Explanation
    hardware: HardwareWord
    title: str
    command: str | None = None
    notes: tuple[str, ...] = ()
    pruned: int = 0
    stretches: Mapping[str, Stretch | None] = field(default_factory=dict)

    @property
    def objectives(self) -> list[Objective]:
        """In the problem's order."""
        return [OBJECTIVES[name] for name in self.problem.objectives]

    @property
    def shown(self) -> Confirmation | None:
        """The confirmation to show: of the recommended candidate, else of the best one."""
        return self.judgement.shown

    @property
    def counts(self) -> dict[str, int]:
        """How many trials there are, and what became of them."""
        return {
            "trials": len(self.trials) + self.pruned,
            "pruned": self.pruned,
            "infeasible": sum(t.evaluation.infeasible is not None for t in self.trials),
            "kept_constraints": sum(t.evaluation.meets for t in self.trials),
        }

    def unit(self, objective: Objective) -> str:
        """Return the unit of an objective's values."""
        return objective.unit_at(self.problem.usd_per_gpu_hour)


def search_summary(report: SearchReport) -> dict[str, Any]:
    """Return a search as plain, JSON-ready data; `docs/guide/search_verdict.md` has its keys."""
    judgement, explanation = report.judgement, report.explanation
    return {
        "schema_version": SEARCH_SCHEMA_VERSION,
        "scenario": report.problem.file.name,
        "objectives": [_objective(report, o) for o in report.objectives],
        "counts": report.counts,
        "decision": judgement.decision,
        "sentence": judgement.sentence,
        "candidate": dict(judgement.candidate),
        "trial": judgement.trial,
        "confirmations": [_confirmation(one) for one in judgement.confirmations],
        "stretches": {name: _stretch(one) for name, one in report.stretches.items()},
        "hardware": {
            "validated": report.hardware.validated,
            "sentence": report.hardware.sentence,
            "command": report.hardware.command,
        },
        "best": [_tried(tried) for tried in explanation.top],
        "pareto": [_tried(tried) for tried in explanation.front],
        "importance": {
            name: [_importance(one) for one in shares]
            for name, shares in explanation.importance.items()
        },
        "alike": dict(explanation.alike),
        "sensitivity": [
            {
                "key": one.key,
                "value": one.value,
                "gain": dict(one.relative),
                "violations": dict(one.broken),
                "infeasible": one.infeasible,
            }
            for one in explanation.neighbours
        ],
        "binds": {
            name: None
            if bound is None
            else {"what": bound.what, "sentence": bound.sentence, "shares": dict(bound.shares)}
            for name, bound in (
                ("default", explanation.default_binding),
                ("candidate", explanation.binding),
            )
        },
        "notes": list(report.notes),
    }


def _objective(report: SearchReport, objective: Objective) -> dict[str, Any]:
    return {
        "name": objective.name,
        "unit": report.unit(objective),
        "direction": objective.direction,
    }


def _stretch(one: Stretch | None) -> dict[str, Any] | None:
    return None if one is None else {"runs": one.runs, **asdict(one.length)}


def _tried(tried: Tried) -> dict[str, Any]:
    return {
        "trial": tried.number,
        "candidate": dict(tried.candidate),
        "objectives": dict(tried.evaluation.objectives),
        "violations": dict(tried.evaluation.violations),
    }


def _importance(one: Importance) -> dict[str, Any]:
    return {
        "key": one.key,
        "share": one.share,
        "medians": dict(one.levels),
        "trials": dict(one.trials),
    }


def _confirmation(one: Confirmation) -> dict[str, Any]:
    return {
        "trial": one.tried.number,
        "candidate": dict(one.tried.candidate),
        "accepted": one.accepted,
        "over": one.over,
        "reasons": list(one.reasons),
        "objectives": dict(one.tried.evaluation.objectives),
        "close_to_limits": list(one.close),
        "limit_errors": dict(one.limit_errors),
        "violations": dict(one.violations),
        "default_violations": dict(one.default_violations),
        "gains": [
            {
                "objective": gain.objective,
                "default": gain.paired.a,
                "candidate": gain.paired.b,
                "gain": gain.paired.relative,
                "low": gain.paired.low,
                "high": gain.paired.high,
                "pairs": gain.paired.pairs,
                "forecast_error": gain.threshold,
                "forecast_error_of": stands_in(gain.objective),
                "at_limits": dict(gain.at_limits),
                "verdict": gain.verdict,
                "why": gain.why,
            }
            for gain in one.gains
        ],
    }
