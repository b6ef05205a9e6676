"""How each GPU is calibrated: measured kernels, measured layers, or published figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hwmodels.efficiency import efficiency_of
from hwmodels.gpus import GPUS
from hwmodels.measured import MeasuredCostModel
from hwmodels.profile import HardwareProfile, measured_points
from hwmodels.provenance import PRETENDED, profiles_of
from hwmodels.spec import GpuSpec
from twin.engine.engines import base_cost_model
from twin.report.numbers import count, significant
from twin.scenario import Scenario

FAMILIES = ("gemm", "gemm fp8", "prefill", "decode", "experts", "all_reduce")
"""Held-out families that the first line tells."""

MEASURE = "twin-calibrate measure --out rows"
FIT = "twin-calibrate fit rows --out mine.npz"


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the durations of one GPU under one engine rest on.

    Attributes:
        gpu: its title.
        state: kernels, layers, pretended or published.
        profile: name of the profile; empty: there is none.
        engine: whose kernels were measured, with its version.
        points: measured points.
        tables: tables they stand in.
        errors: (median, P90) of held-out rows in per cent, by family; each of its own rows.
        date, source: of the data, as stored.
        notes: what else is to be known.
    """

    gpu: str
    state: str
    profile: str
    engine: str
    points: int
    tables: int
    errors: Mapping[str, tuple[float, float]]
    date: str
    source: str
    notes: tuple[str, ...] = ()

    @property
    def calibrated(self) -> bool:
        """Whether measurements of single kernels price its operations."""
        return self.state == "kernels"

    def sentence(self) -> str:
        """Return the line a page opens with."""
        if self.state == "pretended":
            return f"{self.gpu}: {PRETENDED} ({self.profile})."
        if self.state == "published":
            return f"{self.gpu} is not calibrated: published figures. Run `{MEASURE}` on it."
        of_what = f"of {self.tables} kernel tables" if self.calibrated else "of whole layers"
        return (
            f"{self.gpu}: {count(self.points)} measured points {of_what} under {self.engine}, "
            f"data of {self.date}."
        )

    def error_sentence(self) -> str:
        """Return how far its prices were off rows that they did not see."""
        shown = [
            f"{family.replace('_', '-')} {significant(median, 2)} / {significant(p90, 2)}"
            for family, (median, p90) in self.errors.items()
            if family in FAMILIES
        ]
        if not shown:
            return "Held-out error unknown."
        return f"Held-out error, median / P90 %: {', '.join(shown)}."


def calibration_of(scenario: Scenario) -> Calibration:
    """Return what the durations of a scenario rest on."""
    gpu, layers = scenario.gpu, scenario.layer_profile
    if layers is not None:
        return _of_profile(gpu, layers, (f"of {layers.facts.get('llm')} alone",))
    model = base_cost_model(scenario)
    if not isinstance(model, MeasuredCostModel):
        return _published(gpu)
    asked, notes = scenario.file.engine, []
    if scenario.profile is None and model.profile.engine != asked.name:
        notes.append(f"no kernels were measured under {asked.name}: {model.profile.engine}'s")
    elif scenario.profile is None and model.profile.engine_version != asked.version:
        notes.append(f"the nearest to {asked.name} {asked.version}")
    return _of_profile(gpu, model.profile, tuple(notes))


def all_calibrations() -> list[Calibration]:
    """Return the state of every GPU that is known, its profiles one by one."""
    found = []
    for gpu in GPUS.values():
        profiles = profiles_of(gpu.name)
        found += [_of_profile(gpu, profile) for profile in profiles]
        if not any(profile.kind == "kernels" for profile in profiles):
            found.append(_published(gpu, "for every other network" if profiles else ""))
    return found


def _of_profile(gpu: GpuSpec, profile: HardwareProfile, notes: tuple[str, ...] = ()) -> Calibration:
    judged = profile.held_out.items()
    errors = {name: (error.median_pct, error.p90_pct) for name, error in judged}
    state = "pretended" if profile.pretended else profile.kind
    if profile.kind == "layers":
        notes = notes or (f"of {profile.facts.get('llm')} alone",)
    return Calibration(
        gpu=gpu.title,
        state=state,
        profile=profile.name,
        engine=f"{profile.engine} {profile.engine_version}",
        points=measured_points(profile),
        tables=len(profile.tables),
        errors=errors,
        date=profile.provenance.date,
        source=profile.provenance.source,
        notes=notes,
    )


def _published(gpu: GpuSpec, note: str = "") -> Calibration:
    lenders = efficiency_of(gpu).borrowed_from
    about = f"kernels reach what they reach on {', '.join(lenders)}" if lenders else "physics forms"
    source = f"{gpu.source_of('flops_per_s')}; {about}"
    notes = (note,) if note else ()
    return Calibration(gpu.title, "published", "", "", 0, 0, {}, "", source, notes)


STATES = {
    "kernels": "kernels measured",
    "layers": "layers measured",
    "pretended": "dry run: pretended",
    "published": "not calibrated",
}


def table_rows(calibrations: Sequence[Calibration]) -> list[dict[str, Any]]:
    """Return calibrations as a table shows them; errors are median / P90 in per cent."""
    return [
        {
            "GPU": one.gpu,
            "state": STATES[one.state],
            "engine": one.engine,
            "points": one.points or None,
            **{family.replace("_", "-"): _pair(one.errors.get(family)) for family in FAMILIES},
            "date": one.date,
            "source": "; ".join([one.source, *one.notes]),
        }
        for one in calibrations
    ]


def _pair(error: tuple[float, float] | None) -> str:
    return "" if error is None else f"{significant(error[0], 2)} / {significant(error[1], 2)}"


def error_rows(profile: HardwareProfile) -> list[dict[str, Any]]:
    """Return every held-out error of a profile as stored, family by family."""
    return [
        {
            "kernels": name.replace("_", "-"),
            "held out": error.split,
            "rows": error.rows,
            "median (%)": error.median_pct,
            "P90 (%)": error.p90_pct,
        }
        for name, error in profile.held_out.items()
    ]


def measure_commands(setup_command: str) -> str:
    """Return the commands that calibrate the GPU at hand, and forecast with it.

    Args:
        setup_command: the command that forecasts what is on screen.
    """
    return "\n".join([MEASURE, FIT, f"{setup_command} --set profile=mine.npz"])
