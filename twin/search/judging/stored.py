"""Reports of searches that run elsewhere or have ended: from their trials and `summary.json`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.load.inputs import find_arch
from twin.search.candidates import file_of
from twin.search.evaluation import Evaluation
from twin.search.judging.binding import Binding
from twin.search.judging.conclude import SCENARIO_FILE
from twin.search.judging.confirm import Confirmation
from twin.search.judging.explanation import TEN, Explanation, what_matters
from twin.search.judging.gains import Gain
from twin.search.judging.hardware import HardwareWord, hardware_word
from twin.search.judging.paired import PairedGain
from twin.search.judging.pareto import Tried, pareto_set, ranked
from twin.search.judging.report import SEARCH_SCHEMA_VERSION, SearchReport
from twin.search.judging.sensitivity import Neighbour
from twin.search.judging.stretch import Stretch
from twin.search.judging.verdict import Judgement
from twin.search.length import Length
from twin.search.objectives import OBJECTIVES
from twin.search.problem import SearchProblem
from twin.search.study.options import FinishedTrial


def provisional_report(problem: SearchProblem, trials: Sequence[FinishedTrial]) -> SearchReport:
    """Return what can be told while nothing is judged yet: no verdict, nothing run again.

    Args:
        problem: what is searched.
        trials: those finished so far, by number.
    """
    whole = _whole(trials)
    order = ranked(whole, [OBJECTIVES[name] for name in problem.objectives])
    best = order[0] if order else None
    judgement = Judgement("keep the default", "", {}, None, (), best)
    unknown = HardwareWord(False, "", None)
    explanation = _explanation(problem, whole, {}, (), (None, None))
    return SearchReport(
        problem, whole, judgement, explanation, unknown, problem.file.name,
        pruned=len(trials) - len(whole),
    )  # fmt: skip


def stored_report(
    problem: SearchProblem,
    trials: Sequence[FinishedTrial],
    summary: Mapping[str, Any],
    out: Path,
) -> SearchReport:
    """Return the report that `summary.json` was written of.

    Its figures of what binds are left out, which the summary has as sentences alone.

    Args:
        problem: what was searched.
        trials: all of the study, by number.
        summary: as `search_summary` gives it.
        out: the search's folder; a verdict of a GPU that has come there since is told.

    Raises:
        InputError: another version wrote the summary, or a verdict cannot be read.
    """
    if summary.get("schema_version") != SEARCH_SCHEMA_VERSION:
        raise InputError(
            "was written by another version", where="summary.json", remedy="search again"
        )
    whole = _whole(trials)
    order = ranked(whole, [OBJECTIVES[name] for name in problem.objectives])
    candidate = summary["candidate"]
    judgement = Judgement(
        summary["decision"],
        summary["sentence"],
        candidate,
        summary["trial"],
        tuple(_confirmation(one) for one in summary["confirmations"]),
        order[0] if order else None,
    )
    near = tuple(
        Neighbour(n["key"], n["value"], n["gain"], n["violations"], n["infeasible"])
        for n in summary["sensitivity"]
    )
    binds = (_binding(summary["binds"]["default"]), _binding(summary["binds"]["candidate"]))
    return SearchReport(
        problem=problem,
        trials=whole,
        judgement=judgement,
        explanation=_explanation(problem, whole, candidate, near, binds),
        hardware=hardware_word(file_of(problem, candidate).policy, out / SCENARIO_FILE),
        title=problem.file.name,
        notes=tuple(summary["notes"]),
        pruned=len(trials) - len(whole),
        stretches={name: _stretch(one) for name, one in summary["stretches"].items()},
    )


def _whole(trials: Sequence[FinishedTrial]) -> list[Tried]:
    return [Tried(t.number, t.evaluation) for t in trials if t.state != "pruned"]


def _explanation(
    problem: SearchProblem,
    trials: list[Tried],
    around: Mapping[str, Any],
    neighbours: tuple[Neighbour, ...],
    binds: tuple[Binding | None, Binding | None],
) -> Explanation:
    objectives = [OBJECTIVES[name] for name in problem.objectives]
    arch = find_arch(problem.file.llm, problem.base, f"{problem.where}, llm")
    shares, alike = what_matters(problem, trials, experts=arch.moe is not None)
    return Explanation(
        front=tuple(pareto_set(trials, objectives)),
        top=tuple(ranked(trials, objectives)[:TEN]),
        importance=shares,
        alike=alike,
        neighbours=neighbours,
        around=around,
        default_binding=binds[0],
        binding=binds[1],
    )


def _confirmation(kept: Mapping[str, Any]) -> Confirmation:
    return Confirmation(
        tried=Tried(kept["trial"], Evaluation(kept["candidate"], kept["objectives"])),
        over=kept["over"],
        gains=tuple(_gain(one) for one in kept["gains"]),
        violations=kept["violations"],
        default_violations=kept["default_violations"],
        accepted=kept["accepted"],
        reasons=tuple(kept["reasons"]),
        close=tuple(kept["close_to_limits"]),
        limit_errors=kept["limit_errors"],
    )


def _stretch(kept: Mapping[str, Any] | None) -> Stretch | None:
    if kept is None:
        return None
    length = Length(kept["requests"], kept["traffic_s"], kept["simulated_s"])
    return Stretch(kept["runs"], length)


def _gain(kept: Mapping[str, Any]) -> Gain:
    paired = PairedGain(
        kept["default"], kept["candidate"], kept["gain"], kept["low"], kept["high"], kept["pairs"]
    )
    return Gain(
        kept["objective"], paired, kept["forecast_error"], kept["at_limits"], kept["verdict"],
        kept["why"],
    )  # fmt: skip


def _binding(kept: Mapping[str, Any] | None) -> Binding | None:
    return None if kept is None else Binding(kept["what"], kept["sentence"], kept["shares"], ())
