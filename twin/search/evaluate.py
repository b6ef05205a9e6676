"""`Evaluator`: from a candidate to its figures."""

from dataclasses import dataclass, field, replace

import numpy as np

from twin.engine.compiled.jit import is_installed, is_kept
from twin.engine.pricing import Pricing
from twin.engine.run import WORTH_COMPILING, quickest_engine, simulate
from twin.errors import InputError
from twin.load.inputs import Inputs, read_inputs
from twin.load.resolve import resolve_with
from twin.recording import RecordingSpec
from twin.report.latencies import request_latencies
from twin.report.metrics import summarise
from twin.scenario import Scenario, ScenarioFile
from twin.search.candidates import file_of
from twin.search.constraints import violations
from twin.search.evaluation import Evaluation
from twin.search.feasibility import check
from twin.search.knob import Candidate
from twin.search.length import length_of
from twin.search.objectives import OBJECTIVES
from twin.search.outcome import Outcome
from twin.search.piece import SEARCH, Piece
from twin.search.problem import SearchProblem
from twin.search.slices import Slicer


@dataclass(slots=True)
class Evaluator:
    """Evaluates the candidates of a problem; reads its traces once.

    Attributes:
        problem: what is searched.
    """

    problem: SearchProblem
    _slicer: Slicer = field(init=False)
    _pricing: Pricing = field(init=False, default_factory=Pricing)
    _known: dict[tuple[str, Piece], Evaluation] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        problem = self.problem
        inputs = read_inputs(problem.file, problem.base, where=problem.where)
        self._slicer = Slicer(problem.file, inputs, problem.search_share)

    def evaluate(
        self,
        candidate: Candidate,
        piece: Piece = SEARCH,
    ) -> Evaluation:
        """Return what a candidate gives; an equal one is answered from memory.

        All candidates meet the same requests at the same times (common random numbers).

        Args:
            candidate: dotted keys to values; `{}` is the scenario as it is.
            piece: of the workload.
        """
        reason = check(self.problem, candidate)
        if reason is not None:
            return Evaluation(candidate, infeasible=reason)
        file = file_of(self.problem, candidate)
        key = (file.model_dump_json(), piece)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._evaluate(candidate, file, piece)
        return replace(known, candidate=candidate)

    def scenario(
        self,
        candidate: Candidate,
        piece: Piece = SEARCH,
    ) -> Scenario:
        """Return what `evaluate` simulates for a candidate.

        Raises:
            InputError: the candidate cannot be.
        """
        return self._scenario(file_of(self.problem, candidate), piece)

    def _scenario(self, file: ScenarioFile, piece: Piece) -> Scenario:
        cut = self._slicer.cut(piece)
        file = file.model_copy(
            update={
                "seed": cut.seed,
                "horizon_s": cut.horizon_s,
                "recording": recording_of(self.problem),
            }
        )
        inputs: Inputs = replace(self._slicer.inputs, workload=cut.workload)
        return resolve_with(file, inputs, where=self.problem.where)

    def _evaluate(self, candidate: Candidate, file: ScenarioFile, piece: Piece) -> Evaluation:
        try:
            scenario = self._scenario(file, piece)
            result = simulate(scenario, costs=self._pricing.of(scenario), engine=quickest_engine())
            latencies = request_latencies(result.requests)
            figures = summarise(result, file.slo)
            price = self.problem.usd_per_gpu_hour
            outcome = Outcome(scenario, result, latencies, figures, price)
            values = {name: OBJECTIVES[name].value(outcome) for name in self.problem.objectives}
        except InputError as error:
            return Evaluation(candidate, infeasible=error.problem)
        found = {name: value for name, value in values.items() if value is not None}
        for name in self.problem.objectives:
            if name not in found:
                reason = f"too little was served to tell {OBJECTIVES[name].title}"
                return Evaluation(candidate, figures=figures, infeasible=reason)
        return Evaluation(candidate, found, violations(outcome), figures, length=length_of(result))


def recording_of(problem: SearchProblem) -> RecordingSpec:
    """Return how little has to be recorded for a problem's objectives.

    All or nothing: a sample of the gaps between tokens moves their P99 by several percent.
    """
    needed = any(
        OBJECTIVES[name].needs_gaps
        or (OBJECTIVES[name].needs_steps_of_pools and problem.file.cluster.pools)
        for name in problem.objectives
    )
    return RecordingSpec(kind="full" if needed else "none")


def prepare(problem: SearchProblem, evaluations: int) -> None:
    """Compile the engine before a search, where that pays and no earlier process has done it.

    To be called once, before worker processes start: each would do the same.

    Args:
        problem: what is searched.
        evaluations: about how many there will be.
    """
    if not is_installed() or is_kept():
        return
    scenario = Evaluator(problem).scenario({})
    seed = np.random.SeedSequence(scenario.file.seed)
    source = scenario.workload.source(seed, scenario.policy.max_model_len)
    if (source.expected_requests or 0) * evaluations >= WORTH_COMPILING:
        simulate(scenario, engine="compiled")
