"""`sweep_load`: a scenario at several loads, one run each, and finer where it stops to hold."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from twin.errors import InputError
from twin.forecast_error import ForecastError, forecast_error
from twin.load.inputs import Inputs
from twin.report.slo import Slo, read_slo
from twin.scenario import ScenarioFile
from twin.sweep.offered import LoadUnit, offered
from twin.sweep.point import LoadPoint, point_of
from twin.sweep.runs import Progress, Runs
from twin.sweep.scaling import scaled

SWEEP_SCHEMA_VERSION = 1

DEFAULT_FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
MOST_FACTORS = 100
RESOLUTION = 0.1
"""How far apart, relatively, the last load that holds and the first that does not may stay."""
MOST_FINER = 5
"""Most runs to get there."""

_Candidate = tuple[float, float, ScenarioFile]
"""(factor, offered, file)."""


@dataclass(frozen=True, slots=True)
class LoadSweep:
    """A scenario at several loads.

    Attributes:
        name: of the scenario.
        unit: of `offered`: requests a second, or clients of a closed loop.
        slo: what it is judged by.
        error: of the forecast, measured on networks of its kind.
        points: in order of load; equal seeds, so the same chance everywhere.
        notes: caveats of the runs, one sentence each.
    """

    name: str
    unit: LoadUnit
    slo: Slo
    error: ForecastError
    points: tuple[LoadPoint, ...]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain, JSON-ready data."""
        return {
            "schema_version": SWEEP_SCHEMA_VERSION,
            "name": self.name,
            "unit": self.unit,
            "slo": asdict(self.slo) if self.slo.asked else None,
            "error": asdict(self.error),
            "points": [point.as_dict() for point in self.points],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "LoadSweep":
        """Return the sweep in what `as_dict` gave; other keys are left aside."""
        return cls(
            data["name"],
            data["unit"],
            read_slo(data["slo"]),
            ForecastError(**data["error"]),
            tuple(LoadPoint.from_dict(point) for point in data["points"]),
            tuple(data["notes"]),
        )


def sweep_load(
    file: ScenarioFile,
    inputs: Inputs,
    factors: Sequence[float] = DEFAULT_FACTORS,
    *,
    resolution: float = RESOLUTION,
    progress: Progress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> LoadSweep:
    """Simulate a scenario at several loads.

    Every load meets the same seed. Between the last load that holds (`LoadPoint.holds`) and the
    first that does not, loads are added by bisection until these are `resolution` apart, at most
    `MOST_FINER`.

    Args:
        file: a validated scenario file; its paths are absolute.
        inputs: what its files hold.
        factors: times the scenario's load (`twin.sweep.scaling.scaled`), in any order.
        resolution: relative, above 0; inf: no finer loads.
        progress: is told of each run.
        should_stop: is asked before each run.

    Raises:
        InputError: a factor is none, or the scenario cannot be simulated.
        StoppedError: `should_stop` says so.
    """
    slo, error = read_slo(file.slo), forecast_error(experts=inputs.arch.moe is not None)
    candidates, unit = _candidates(file, inputs, factors)
    runs = Runs(inputs, progress, should_stop, len(candidates) + MOST_FINER)
    notes: dict[str, None] = {}

    def measure(candidate: _Candidate) -> LoadPoint:
        factor, load, there = candidate
        scenario, result = runs.run(there)
        notes.update(dict.fromkeys(result.notes))
        return point_of(scenario, result, (factor, load), slo, error)

    points = [measure(candidate) for candidate in candidates]
    for _ in range(MOST_FINER):
        between = _between(file, inputs, points, resolution)
        if between is None:
            break
        points = sorted([*points, measure(between)], key=lambda point: point.offered)
    runs.finish()
    return LoadSweep(file.name, unit, slo, error, tuple(points), tuple(notes))


def edge(points: Sequence[LoadPoint]) -> tuple[LoadPoint | None, LoadPoint | None]:
    """Return the first load that does not hold, and the one before; None: there is none."""
    for index, point in enumerate(points):
        if not point.holds:
            return (points[index - 1] if index else None), point
    return (points[-1] if points else None), None


def _candidates(
    file: ScenarioFile, inputs: Inputs, factors: Sequence[float]
) -> tuple[list[_Candidate], LoadUnit]:
    """Return what to run, by load: of factors that give one load (few clients) the nearest to 1."""
    if not factors or len(factors) > MOST_FACTORS:
        raise InputError(
            f"{len(factors)} loads", where="factors", remedy=f"give 1 to {MOST_FACTORS} of them"
        )
    by_load: dict[float, _Candidate] = {}
    own = offered(file, inputs)
    for factor in sorted(set(factors), key=lambda factor: (_distance(factor), factor)):
        there = scaled(file, factor)
        load = offered(there, inputs).value
        by_load.setdefault(load, (factor, load, there))
    return [by_load[load] for load in sorted(by_load)], own.unit


def _distance(factor: float) -> float:
    return abs(math.log(factor)) if factor > 0 and math.isfinite(factor) else math.inf


def _between(
    file: ScenarioFile, inputs: Inputs, points: Sequence[LoadPoint], resolution: float
) -> _Candidate | None:
    """Return the load to try next between the last that holds and the first that does not."""
    good, bad = edge(points)
    if good is None or bad is None or bad.offered <= good.offered * (1 + resolution):
        return None
    factor = math.sqrt(good.factor * bad.factor)
    there = scaled(file, factor)
    load = offered(there, inputs).value
    if not good.offered < load < bad.offered:  # no client between so many and one more
        return None
    return factor, load, there
