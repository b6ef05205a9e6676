"""`size_replicas`: the smallest number of replicas that meets the SLO."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from twin.cluster import MAX_REPLICAS
from twin.errors import InputError
from twin.forecast_error import ForecastError, forecast_error
from twin.load.inputs import Inputs
from twin.load.variant import variant
from twin.report.metrics import summarise
from twin.report.slo import Slo, read_slo
from twin.scenario import ScenarioFile
from twin.sweep.judged import Judged, judge
from twin.sweep.runs import Progress, Runs
from twin.sweep.smallest import most_questions, smallest

SIZING_SCHEMA_VERSION = 1
MOST_REPLICAS = 64


@dataclass(frozen=True, slots=True)
class SizedRun:
    """The scenario on a number of replicas.

    Attributes:
        replicas: how many.
        slo: whether it meets the objective.
        slo_ttft_s, slo_tpot_s: at the SLO's percentile; None: no such limit, or none was served.
        slo_attainment: share of requests within every limit.
        goodput_per_s: requests a second within the SLO.
        kv_peak: share of a replica's KV blocks in use, at most.
        preemptions: in all.
    """

    replicas: int
    slo: Judged
    slo_ttft_s: float | None
    slo_tpot_s: float | None
    slo_attainment: float | None
    goodput_per_s: float | None
    kv_peak: float | None
    preemptions: int

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SizedRun":
        """Return the run in plain data."""
        return cls(**{**data, "slo": Judged(**data["slo"])})


@dataclass(frozen=True, slots=True)
class Sizing:
    """How many replicas a scenario needs.

    Attributes:
        name: of the scenario.
        gpu: its GPU's name.
        gpus_a_replica: tp x pp x dp.
        slo: what has to be met.
        error: of the forecast, measured on networks of its kind.
        most: replicas that were allowed.
        replicas: the smallest number that meets the SLO; None: not so many do.
        low: the smallest that does if latencies are shorter by the forecast's error.
        high: the smallest that does if they are longer by it.
        runs: every number that was simulated, ascending.
        notes: caveats of the runs, one sentence each.
    """

    name: str
    gpu: str
    gpus_a_replica: int
    slo: Slo
    error: ForecastError
    most: int
    replicas: int | None
    low: int | None
    high: int | None
    runs: tuple[SizedRun, ...]
    notes: tuple[str, ...] = ()

    @property
    def gpus(self) -> int | None:
        """GPUs of all replicas; None: not known."""
        return None if self.replicas is None else self.replicas * self.gpus_a_replica

    def run(self, replicas: int | None) -> SizedRun | None:
        """Return what so many replicas give; None: they were not simulated."""
        return next((run for run in self.runs if run.replicas == replicas), None)

    def as_dict(self) -> dict[str, Any]:
        """Return plain, JSON-ready data."""
        data = asdict(self)
        data["runs"], data["notes"] = list(data["runs"]), list(self.notes)
        return {"schema_version": SIZING_SCHEMA_VERSION, **data, "gpus": self.gpus}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Sizing":
        """Return the sizing in what `as_dict` gave; other keys are left aside."""
        fields = {name: data[name] for name in cls.__slots__}
        fields |= {
            "slo": read_slo(data["slo"]),
            "error": ForecastError(**data["error"]),
            "runs": tuple(SizedRun.from_dict(run) for run in data["runs"]),
            "notes": tuple(data["notes"]),
        }
        return cls(**fields)


def size_replicas(
    file: ScenarioFile,
    inputs: Inputs,
    *,
    most: int = MOST_REPLICAS,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> Sizing:
    """Find the smallest number of replicas that meets a scenario's SLO.

    Each number is simulated once, with the same requests. It is found by steps that double and
    then by bisection, which takes for granted that what some replicas meet, more of them meet; the
    answer meets it, and one replica fewer was simulated and does not.

    Args:
        file: a validated scenario file; its paths are absolute. `cluster.replicas` is not read.
        inputs: what its files hold.
        most: replicas, at most.
        progress: is told of each run.
        should_stop: is asked before each run.

    Raises:
        InputError: there is no SLO, or the cluster is not of one kind and number of replicas.
        StoppedError: `should_stop` says so.
    """
    least = _least(file, most)
    slo, error = read_slo(file.slo), forecast_error(experts=inputs.arch.moe is not None)
    runs = Runs(inputs, progress, should_stop, most_questions(most - least + 1))
    found: dict[int, SizedRun] = {}
    notes: dict[str, None] = {}

    def of(replicas: int) -> Judged:
        if replicas not in found:
            there = variant(file, {"cluster.replicas": replicas}, where=file.name)
            result = runs.run(there)[1]
            notes.update(dict.fromkeys(result.notes))
            figures = summarise(result, slo)
            found[replicas] = _sized(replicas, figures, judge(result, slo, error))
        return found[replicas].slo

    enough = smallest(lambda n: of(n).met is True, least, most)
    low = smallest(lambda n: of(n).met_if_faster is True, least, enough or most)
    high = None if enough is None else smallest(lambda n: of(n).met_if_slower is True, enough, most)
    runs.finish()
    spec = file.parallelism
    return Sizing(
        name=file.name,
        gpu=file.gpu,
        gpus_a_replica=spec.tp * spec.pp * spec.dp,
        slo=slo,
        error=error,
        most=most,
        replicas=enough,
        low=low,
        high=high,
        runs=tuple(found[n] for n in sorted(found)),
        notes=tuple(notes),
    )


def _sized(replicas: int, figures: Mapping[str, Any], slo: Judged) -> SizedRun:
    limits = figures["slo"] or {}
    return SizedRun(
        replicas=replicas,
        slo=slo,
        slo_ttft_s=limits.get("ttft_s"),
        slo_tpot_s=limits.get("tpot_s"),
        slo_attainment=figures["slo_attainment"],
        goodput_per_s=figures["goodput_requests_per_s"],
        kv_peak=figures["kv_cache_usage"]["max"],
        preemptions=figures["preemptions"],
    )


def _least(file: ScenarioFile, most: int) -> int:
    """Return the fewest replicas the scenario can have; scheduled failures name theirs."""
    cluster = file.cluster
    if cluster.pools is not None or cluster.autoscaler is not None:
        key = "cluster.pools" if cluster.pools is not None else "cluster.autoscaler"
        raise InputError(
            f"{key} says how many replicas there are", where=file.name, remedy="leave it out"
        )
    if not read_slo(file.slo).asked:
        raise InputError(
            "there is no SLO to size for", where=file.name, remedy="set slo.ttft_s or slo.tpot_s"
        )
    struck = cluster.failures.scheduled if cluster.failures is not None else ()
    least = 1 + max((failure.replica for failure in struck), default=0)
    if not least <= most <= MAX_REPLICAS:
        raise InputError(
            f"at most {most} replicas", where="most", remedy=f"give {least} to {MAX_REPLICAS:,}"
        )
    return least
