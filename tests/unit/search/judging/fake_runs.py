"""A workload whose figures follow from a formula, with noise that both sides of a pair share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from twin.scenario import ScenarioFile
from twin.search.evaluation import Evaluation
from twin.search.judging.pareto import Tried, candidate_key
from twin.search.judging.runs import WholeRun
from twin.search.knob import Candidate, Choices, Knob, Powers
from twin.search.length import Length
from twin.search.piece import SEARCH, Part, Piece
from twin.search.problem import Limits, SearchProblem

TTFT, ITL, GOODPUT = "p99_ttft_s", "p99_itl_s", "goodput_per_gpu_hour"
SEQS, BUDGET, DTYPE = (
    "policy.max_num_seqs",
    "policy.max_num_batched_tokens",
    "policy.kv_cache_dtype",
)

Values = Mapping[str, float]
Formula = Callable[[Candidate, Part], Values]

KNOBS = (
    Knob(SEQS, Powers(64, 512), frozenset({"vllm"}), "running", {}),
    Knob(BUDGET, Powers(512, 8192), frozenset({"vllm"}), "tokens", {}),
    Knob(DTYPE, Choices(("auto", "fp8")), frozenset({"vllm"}), "KV", {}, lossy=True),
)
DEFAULTS = {SEQS: 256, BUDGET: 2048, DTYPE: "auto"}

SUMMARY: dict[str, Any] = {
    "kv_cache_usage": {"mean": 0.2, "max": 0.4},
    "running": {"mean": 10.0, "max": 20},
    "waiting": {"mean": 0.0, "max": 0},
    "time_by_bound": {"compute": 0.3, "hbm": 0.7, "link": 0.0, "launch": 0.0},
    "gpu_busy_share": 0.5,
    "preemptions": 0,
    "prefix_cache_hit_rate": 0.1,
    "kv_blocks": 1000,
    "queue_grows": False,
}


@dataclass
class FakeRuns:
    """Runs by formula.

    Attributes:
        objectives, violations: of a candidate on a part.
        noise: standard deviation of a factor that a seed or stretch puts on all objectives.
        own_noise: of one that it puts on each candidate's alone.
        recorded: whether traffic is a recording.
        at_limits: objectives of a candidate at other limits.
    """

    objectives: Formula
    violations: Formula = lambda candidate, part: {"ttft_s": -0.5}
    noise: float = 0.2
    own_noise: float = 0.0
    recorded: bool = False
    at_limits: Callable[[Candidate], Mapping[str, Values]] = lambda candidate: {}
    infeasible: Callable[[Candidate], str | None] = lambda candidate: None
    summary: Mapping[str, Any] = field(default_factory=lambda: SUMMARY)
    asked: list[tuple[str, Part, int | None, float, float]] = field(default_factory=list)

    def evaluate(
        self,
        candidate: Candidate,
        piece: Piece = SEARCH,
    ) -> Evaluation:
        part, seed, share, start = piece.part, piece.seed, piece.share, piece.start
        self.asked.append((candidate_key(candidate), part, seed, share, start))
        reason = self.infeasible(candidate)
        if reason is not None:
            return Evaluation(candidate, infeasible=reason)
        traffic = [0 if seed is None else seed, round(1000 * start)]
        factor = 1.0
        if (seed, share) != (None, 1.0):
            factor += self.noise * np.random.default_rng(traffic).standard_normal()
            own = [*traffic, *candidate_key(candidate).encode()]
            factor += self.own_noise * np.random.default_rng(own).standard_normal()
        values = {name: value * factor for name, value in self.objectives(candidate, part).items()}
        length = Length(600 * share, 60 * share, 60 * share + 5)
        return Evaluation(candidate, values, dict(self.violations(candidate, part)), length=length)

    def whole(self, candidate: Candidate) -> WholeRun:
        return WholeRun(self.summary, {"policy": {"max_num_seqs": 256}}, self.at_limits(candidate))

    def tried(self, *candidates: Candidate) -> list[Tried]:
        """Trials of these candidates."""
        return [Tried(number, self.evaluate(c)) for number, c in enumerate(candidates)]


def problem(*objectives: str) -> SearchProblem:
    """A problem of three knobs."""
    file = ScenarioFile.model_validate(
        {
            "schema_version": 1,
            "name": "made-up",
            "llm": "llama-3.1-8b",
            "gpu": "h100_sxm",
            "slo": {"ttft_s": 1.0},
            "workload": {
                "kind": "synthetic",
                "arrivals": {"kind": "poisson", "rate": 4},
                "num_requests": 20,
                "prompt_tokens": 100,
                "output_tokens": 20,
            },
        }
    )
    limits = Limits(gpus=1, max_kv_error=0.1)
    return SearchProblem(
        file, Path(), "made-up", KNOBS, objectives, limits, defaults=dict(DEFAULTS)
    )
