"""`EvaluatorRuns`: judging's runs by a problem's own evaluator."""

from dataclasses import dataclass, field, replace

from twin.engine.run import simulate
from twin.recording import RecordingSpec
from twin.report.latencies import request_latencies
from twin.report.metrics import summarise
from twin.scenario import Scenario
from twin.search.evaluate import Evaluator
from twin.search.evaluation import Evaluation
from twin.search.judging.error_of_difference import slo_errors
from twin.search.judging.pareto import candidate_key
from twin.search.judging.runs import WholeRun
from twin.search.knob import Candidate
from twin.search.objectives import OBJECTIVES
from twin.search.outcome import Outcome
from twin.search.piece import HELD_OUT, SEARCH, Piece
from twin.workload.spec import TraceWorkload


@dataclass(slots=True)
class EvaluatorRuns:
    """Runs candidates with an evaluator.

    Attributes:
        evaluator: of the problem.
        experts: whether its network is a mixture of experts.
    """

    evaluator: Evaluator
    experts: bool
    _whole: dict[str, WholeRun] = field(init=False, default_factory=dict)

    @property
    def recorded(self) -> bool:
        """Whether traffic is a trace with its own arrivals."""
        workload = self.evaluator.problem.file.workload
        return isinstance(workload, TraceWorkload) and workload.arrivals is None

    def evaluate(
        self,
        candidate: Candidate,
        piece: Piece = SEARCH,
    ) -> Evaluation:
        """Return a candidate's figures; see `Runs`."""
        return self.evaluator.evaluate(candidate, piece)

    def whole(self, candidate: Candidate) -> WholeRun:
        """Return the recorded run over the held-out part; see `Runs`."""
        key = candidate_key(candidate)
        if key not in self._whole:
            self._whole[key] = self._run(candidate)
        return self._whole[key]

    def _run(self, candidate: Candidate) -> WholeRun:
        scenario = self.evaluator.scenario(candidate, HELD_OUT)
        file = scenario.file.model_copy(update={"recording": RecordingSpec()})
        scenario = replace(scenario, file=file)
        result = simulate(scenario)
        outcome = Outcome(
            scenario,
            result,
            request_latencies(result.requests),
            summarise(result, scenario.file.slo),
            self.evaluator.problem.usd_per_gpu_hour,
        )
        limits = self._at_limits(outcome)
        return WholeRun(outcome.figures, result.inputs, limits, result.notes)

    def _at_limits(self, outcome: Outcome) -> dict[str, dict[str, float]]:
        slo = outcome.scenario.file.slo
        names = [n for n in self.evaluator.problem.objectives if OBJECTIVES[n].needs_slo]
        if not names:
            return {}
        errors = slo_errors(experts=self.experts)
        found: dict[str, dict[str, float]] = {}
        for side in ("tight", "loose"):
            limits = {}
            for name, error in zip(("ttft_s", "tpot_s"), errors, strict=True):
                limit_s = getattr(slo, name)
                factor = 1 + error if side == "loose" else 1 / (1 + error)
                limits[name] = None if limit_s is None else limit_s * factor
            moved = with_slo(outcome.scenario, limits)
            values = {n: OBJECTIVES[n].value(replace(outcome, scenario=moved)) for n in names}
            found[side] = {n: 0.0 if value is None else value for n, value in values.items()}
        return found


def with_slo(scenario: Scenario, limits: dict[str, float | None]) -> Scenario:
    """Return a scenario whose objective has other limits."""
    slo = scenario.file.slo.model_copy(update=limits)
    return replace(scenario, file=scenario.file.model_copy(update={"slo": slo}))
