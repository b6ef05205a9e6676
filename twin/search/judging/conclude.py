"""`conclude`: from a study's trials to its report."""

from collections.abc import Callable
from pathlib import Path

from twin.forecast_error import STANDS_IN
from twin.llm.quality import caveats
from twin.load.inputs import find_arch
from twin.search.candidates import file_of
from twin.search.evaluate import Evaluator
from twin.search.judging.evaluator_runs import EvaluatorRuns
from twin.search.judging.explanation import explain
from twin.search.judging.hardware import hardware_word
from twin.search.judging.pareto import Tried
from twin.search.judging.report import SearchReport
from twin.search.judging.runs import Runs
from twin.search.judging.stretch import stretches
from twin.search.judging.verdict import Judgement, judge
from twin.search.problem import SearchProblem
from twin.search.study.options import StudyResult
from twin.search.study.rungs import told_rungs

SCENARIO_FILE = "scenario.yaml"
"""In a search's folder: the scenario with the recommended policy."""

SATURATED = (
    "The queue grows to the end of the run: forecast errors are those of engines that are not "
    "saturated, and are larger here."
)


def conclude(
    problem: SearchProblem,
    study: StudyResult,
    out: Path,
    *,
    seeds: int = 5,
    command: str | None = None,
    progress: Callable[[str], None] | None = None,
) -> SearchReport:
    """Return a study's report: the best candidates run again, judged and explained.

    Args:
        problem: what was searched.
        study: its trials.
        out: the folder that the report will stand in; a verdict of a GPU there is told.
        seeds: how many fresh seeds; recordings are cut into twice as many stretches.
        command: how the search was started.
        progress: told what is being run.

    Raises:
        InputError: the scenario's files, or a verdict in `out`, cannot be read.
    """
    experts = find_arch(problem.file.llm, problem.base, problem.where).moe is not None
    runs = EvaluatorRuns(Evaluator(problem), experts)
    whole = [Tried(t.number, t.evaluation) for t in study.trials if t.state != "pruned"]
    judgement = judge(problem, whole, runs, experts=experts, seeds=seeds, progress=progress)
    lengths = stretches(whole, judgement.shown, runs)
    explanation = explain(problem, whole, judgement, runs, experts=experts, progress=progress)
    return SearchReport(
        problem=problem,
        trials=whole,
        judgement=judgement,
        explanation=explanation,
        hardware=hardware_word(file_of(problem, judgement.candidate).policy, out / SCENARIO_FILE),
        title=problem.file.name,
        command=command,
        notes=(*_answers(problem, judgement), *_stopped(study), *_notes(judgement, runs)),
        pruned=len(study.trials) - len(whole),
        stretches=lengths,
    )


def _answers(problem: SearchProblem, judgement: Judgement) -> tuple[str, ...]:
    """Return what the number formats of a recommended policy may do to answers."""
    if not judgement.candidate:
        return ()
    policy = file_of(problem, judgement.candidate).policy
    return caveats(policy.kv_cache_dtype, policy.quantization)


def _stopped(study: StudyResult) -> tuple[str, ...]:
    """Return what parts of the traffic did not tell good candidates from weak ones."""
    told = told_rungs(study.rungs)
    return () if told is None else (told,)


def _notes(judgement: Judgement, runs: Runs) -> tuple[str, ...]:
    """Return the forecast's caveats; none where nothing could be simulated."""
    if judgement.best is None:
        return ()
    whole = runs.whole(judgement.candidate or judgement.best.candidate)
    grows = [SATURATED] if whole.summary["queue_grows"] else []
    return (STANDS_IN, *grows, *whole.notes)
