"""`SearchProblem`: a scenario, what may vary in it and what is wanted of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from twin.scenario import ScenarioFile
from twin.search.knob import Candidate, Knob, Value


@dataclass(frozen=True, slots=True)
class Limits:
    """What a candidate has to keep.

    Attributes:
        gpus: most GPUs that all replicas together may take.
        max_kv_error, max_weight_error: relative L2 error of quantised KV and weights on Gaussian
            data, at most; 0 allows no quantisation that loses anything.
    """

    gpus: int
    max_kv_error: float = 0.0
    max_weight_error: float = 0.0


@dataclass(frozen=True, slots=True)
class SearchProblem:
    """What is searched.

    Attributes:
        file: the scenario; its policy is the candidate `{}` and its SLO the constraint.
        base: folder that relative paths in it start from.
        where: how messages name it.
        knobs: what may be turned, domains narrowed to this network, GPU and budget.
        objectives: names in `twin.search.objectives.OBJECTIVES`, the first decides.
        limits: what every candidate has to keep.
        usd_per_gpu_hour: price of a GPU; None: cost is told in GPU-hours.
        search_share: share of a trace's time that trials see; the rest is kept for the winner.
        starts: candidates tried before anything is sampled; the first is `{}`.
        dropped: why the other knobs are not, by key.
        defaults: what each knob stands at in `{}`, engine's defaults filled in.
    """

    file: ScenarioFile
    base: Path
    where: str
    knobs: tuple[Knob, ...]
    objectives: tuple[str, ...]
    limits: Limits
    usd_per_gpu_hour: float | None = None
    search_share: float = 0.7
    starts: tuple[Candidate, ...] = ({},)
    defaults: Mapping[str, Value] = field(default_factory=dict)
    dropped: Mapping[str, str] = field(default_factory=dict)
