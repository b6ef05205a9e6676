"""Measured kernels of a setup's GPU against the prices of tables that did not hold them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.answers.hardware.calibration import error_rows
from app.answers.setup import Setup
from hwmodels.measured import MeasuredCostModel
from hwmodels.measured.held_out import held_rows, kept
from hwmodels.measured.rows import predicted_seconds
from hwmodels.profile import HardwareProfile, Table
from hwmodels.provenance import PRETENDED
from hwmodels.spec import GpuSpec
from twin.engine.engines import base_cost_model
from twin.report.charts.chart import Chart
from twin.report.charts.modelled import Compared, measured_against_modelled, modelled_ratio

_HEADS = ("64", "128", "192", "256")
_EXPERTS = ("bf16", "fp8", "fp8_block", "mxfp4")
TABLES: dict[str, tuple[str, ...]] = {
    "gemm": ("gemm.bf16",),
    "gemm fp8": ("gemm.fp8",),
    "prefill": tuple(f"prefill.{head}.bf16" for head in _HEADS),
    "decode": tuple(f"decode.{head}.bf16" for head in _HEADS),
    "experts": tuple(f"experts.{dtype}" for dtype in _EXPERTS),
    "all-reduce": ("engine_all_reduce",),
}
"""Tables of each family that is drawn. Lines of NCCL are fitted, so none of its rows is unseen."""

_POINTS = 100
"""Points of a family."""


@dataclass(frozen=True, slots=True)
class KernelsAnswer:
    """How well the tables price what they do not hold.

    Attributes:
        scatter, ratio: the points; without a spec where no kernel was measured.
        errors: held-out errors as the profile stores them, over all held-out rows.
        profile: name of the profile; empty: there is none.
        notes: what to keep in mind.
    """

    scatter: Chart
    ratio: Chart
    errors: list[dict[str, Any]]
    profile: str
    notes: list[str]


def kernels_of(setup: Setup) -> KernelsAnswer:
    """Return measured against modelled kernels of what prices a setup.

    Raises:
        InputError: its parts do not go together.
    """
    scenario = setup.scenario()
    model = base_cost_model(scenario)
    if not isinstance(model, MeasuredCostModel):
        points: list[Compared] = []
        title = scenario.gpu.title
        return KernelsAnswer(
            measured_against_modelled(title, points), modelled_ratio(title, points), [], "", []
        )
    profile = model.profile
    points = held_out_points(profile, model.gpu)
    title = f"{model.gpu.title}, {profile.engine} {profile.engine_version}"
    notes = [
        "Each point is a row that was taken out of its table, one in five, and priced by what is "
        "left. Decode attention is compared as it was measured, KV left in the L2."
    ]
    if profile.pretended:
        notes.insert(0, f"{PRETENDED}: these errors are of pretended rows.")
    return KernelsAnswer(
        measured_against_modelled(title, points),
        modelled_ratio(title, points),
        error_rows(profile),
        profile.name,
        notes,
    )


def held_out_points(profile: HardwareProfile, gpu: GpuSpec) -> list[Compared]:
    """Return held-out rows of every family that is drawn, each with the price of the rest."""
    return [
        point
        for family, names in TABLES.items()
        for point in _of_family(profile, gpu, family, [n for n in names if n in profile.tables])
    ]


def _of_family(
    profile: HardwareProfile, gpu: GpuSpec, family: str, names: list[str]
) -> list[Compared]:
    found = []
    for name in names:
        table = profile.tables[name]
        mask = held_rows(name, table)
        rest = kept(table, ~mask)
        rows = _evenly(kept(table, mask), -(-_POINTS // len(names)))
        if not len(rows["seconds"]) or not len(rest["seconds"]):
            continue
        priced = predicted_seconds(replace(profile, tables={name: rest}), gpu, name, rows)
        found += [
            Compared(family, f"{name}: {_shape(rows, index)}", float(measured), float(modelled))
            for index, (measured, modelled) in enumerate(zip(rows["seconds"], priced, strict=True))
        ]
    return found


def _evenly(rows: Table, most: int) -> Table:
    total = len(rows["seconds"])
    places = np.unique(np.linspace(0, max(0, total - 1), min(most, total)).round().astype(int))
    return {name: column[places] for name, column in rows.items()}


def _shape(rows: Mapping[str, Any], index: int) -> str:
    axes = (f"{name} {int(column[index]):,}" for name, column in rows.items() if name != "seconds")
    return ", ".join(axes)
