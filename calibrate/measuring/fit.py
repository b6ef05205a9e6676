"""From a folder of rows to a hardware profile, and how well it fits."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrate.holdout import (
    FAMILIES,
    Family,
    held_out_errors,
    price_rows,
    without_random_rows,
)
from calibrate.holdout_groups import held_out_by_group
from calibrate.kernel_fits import with_fits
from calibrate.measurement import Measurement
from calibrate.measuring.device import as_facts
from calibrate.measuring.journal import Kept
from calibrate.measuring.memory_fit import memory_parameters, stream_bytes_per_s
from calibrate.measuring.other_fits import (
    launch_parameters,
    paged_share_of_copy,
    paging_parameters,
    stream_share,
)
from calibrate.measuring.results import read_folder
from calibrate.measuring.session import DRY_RUN
from calibrate.sources.measurements import profile_of_rows
from hwmodels.efficiency import efficiency_of
from hwmodels.given import gpu_of
from hwmodels.gpus import GPUS
from hwmodels.measured.held_out import SEED
from hwmodels.measured.tables import kernel_of
from hwmodels.profile import HardwareProfile, HeldOut, ProfileError
from hwmodels.profile_check import check_profile
from twin.errors import InputError

_JUDGED = ("gemm", "gemm fp8", "prefill", "decode", "decode fp8", "decode int8")
BARS: dict[str, tuple[float, float]] = dict.fromkeys(_JUDGED, (4.0, 12.0))
"""Held-out error that a profile should keep below, median and P90 in per cent."""

PAGED_SHARE = 0.85
"""Of the measured copy bandwidth, that decode over much KV should reach."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One line of what `fit` prints.

    Attributes:
        rows: of the family's tables.
        fitted: median and P90 error in per cent of the form alone, on the rows it was fitted on;
            None: no form was.
        held_out: error of tables and form on rows neither saw; None: too few rows.
    """

    family: str
    rows: int
    fitted: tuple[float, float] | None
    held_out: HeldOut | None

    @property
    def passes(self) -> bool | None:
        """Whether the held-out error keeps below its bar; None where there is none to keep."""
        bar = BARS.get(self.family)
        if bar is None or self.held_out is None:
            return None
        return self.held_out.median_pct <= bar[0] and self.held_out.p90_pct <= bar[1]


@dataclass(frozen=True, slots=True)
class Fitted:
    """A profile, and its judgement.

    Attributes:
        paged_share: decode's share of the copy bandwidth over large KV, and the rows; None: not
            measured.
    """

    profile: HardwareProfile
    families: list[Judged]
    paged_share: tuple[float, int] | None

    @property
    def pretended(self) -> bool:
        """Whether the rows are those of a dry run."""
        return self.profile.engine == DRY_RUN


_SECONDS = "check that the times are seconds"
_SLOWEST_STREAM, _FASTEST_STREAM = 0.05, 1.5


def fit_folder(folder: Path, seed: int = SEED) -> Fitted:
    """Return the profile of a folder that `measure` wrote.

    Raises:
        InputError: no rows there, or rows of a GPU that nothing is known of.
    """
    kept = read_folder(folder)
    rows = [kept.rows[key] for key in sorted(kept.rows)]
    if not rows:
        raise InputError("holds no rows yet", where=str(folder), remedy="measure for longer")
    return fit_rows(rows, kept, str(folder), seed)


def fit_rows(rows: list[Measurement], kept: Kept, where: str, seed: int) -> Fitted:
    """Return the profile of some rows, with forms and parameters fitted, and judged."""
    try:
        profile = _profile(rows, kept, where)
        gpu = gpu_of(profile)
    except ProfileError as error:
        raise InputError(str(error), where=where) from None
    training = without_random_rows(profile, seed)
    profile = with_fits(profile, training, seed)
    clock_hz = _clock_hz(rows) or gpu.boost_hz
    more = {
        "launch": _launch(profile, launch_parameters(profile.tables)),
        "stream": stream_share(profile.tables, gpu),
        "memory": memory_parameters(profile.tables, gpu, clock_hz),
        "paging": paging_parameters(profile.tables),
    }
    parameters = {**profile.parameters, **{name: value for name, value in more.items() if value}}
    profile = replace(profile, parameters=parameters)
    _check_units(profile, where)
    errors = held_out_errors(profile, seed)
    profile = replace(profile, held_out={**errors, **held_out_by_group(profile, seed)})
    families = [
        Judged(family.name, _count(profile, family), _form_error(training, profile, family),
               errors.get(family.name))
        for family in FAMILIES
        if _count(profile, family)
    ]  # fmt: skip
    return Fitted(profile, families, paged_share_of_copy(profile.tables, gpu))


def _check_units(profile: HardwareProfile, where: str) -> None:
    """Refuse what no GPU does: seconds in another unit fit as well as seconds."""
    try:
        check_profile(profile)  # as a forecast will
    except ProfileError as error:
        raise InputError(f"fitted, but {error}", where=where, remedy=_SECONDS) from None
    share = profile.parameters.get("stream")
    if share is not None and not _SLOWEST_STREAM <= share <= _FASTEST_STREAM:
        raise InputError(
            f"reading reaches {share:.3g} times the memory bandwidth of {profile.gpu}",
            where=where,
            remedy=_SECONDS,
        )


def _profile(rows: list[Measurement], kept: Kept, where: str) -> HardwareProfile:
    facts = kept.facts
    if not facts and rows[0].gpu in GPUS:
        facts = as_facts(GPUS[rows[0].gpu])
    if not facts:
        raise InputError(
            f"nothing is known of the GPU {rows[0].gpu}",
            where=where,
            remedy="keep the rows.jsonl or measure.json that measure wrote beside the rows",
        )
    if facts.get("name") != rows[0].gpu:
        raise InputError(
            f"facts are of the GPU {facts.get('name')}, rows of {rows[0].gpu}",
            where=where,
            remedy="keep rows and measure.json of one GPU in a folder",
        )
    profile = profile_of_rows(rows, "measured by twin-calibrate", where, {"gpu": facts})
    if not facts.get("hbm_bytes_per_s"):
        profile = replace(profile, facts={**profile.facts, "gpu": _with_bandwidth(profile, facts)})
    if profile.engine != DRY_RUN:
        return profile
    notes = ("DRY RUN: seconds are pretended, nothing was measured", *profile.provenance.notes)
    name = f"{profile.gpu}-servetwin-{profile.engine_version}-dry-run"
    return replace(profile, name=name, provenance=replace(profile.provenance, notes=notes))


def _with_bandwidth(profile: HardwareProfile, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of a GPU whose driver tells no bandwidth: the fastest stream stands for it."""
    whole = {**facts, "hbm_bytes_per_s": 1.0}
    gpu = gpu_of(replace(profile, facts={**profile.facts, "gpu": whole}))
    reached = stream_bytes_per_s(profile.tables, gpu)
    if reached is None:
        raise InputError(
            f"the memory bandwidth of {facts.get('title')} is not known",
            remedy="measure the stream probe: --only stream",
        )
    share = efficiency_of(gpu).stream
    sources = {
        **(facts.get("sources") or {}),
        "hbm_bytes_per_s": f"measured: {reached / 1e9:.0f} GB/s read, taken for "
        f"{share:.0%} of it as on its nearest relative",
    }
    return {**facts, "hbm_bytes_per_s": reached / share, "sources": sources}


def _clock_hz(rows: list[Measurement]) -> float | None:
    """The clock that the chase ran at."""
    clocks = [row.sm_clock_hz for row in rows if row.kernel == "chase" and row.sm_clock_hz]
    return float(np.median(clocks)) if clocks else None


def _launch(profile: HardwareProfile, measured: dict[str, float]) -> dict[str, float]:
    """All of `LaunchFit`: what wasn't measured is what the GPU's entry has."""
    if not measured:
        return {}
    known = asdict(efficiency_of(gpu_of(profile)).launch)
    named = {name: known[name] for name in ("stream_gap_s", "graph_gap_s", "eager_op_s")}
    return {**named, **measured}


def _count(profile: HardwareProfile, family: Family) -> int:
    tables = [profile.tables[name] for name in family.tables if name in profile.tables]
    return sum(len(table["seconds"]) for table in tables)


def _form_error(
    training: HardwareProfile, fitted: HardwareProfile, family: Family
) -> tuple[float, float] | None:
    """Median and P90 error, in per cent, of the form alone on the rows it was fitted on."""
    form = _FORMS.get(family.name)
    if form is None or form not in fitted.parameters:
        return None
    alone = replace(fitted, tables={})
    errors = [
        price_rows(alone, name, training.tables[name])
        for name in family.tables
        if name in training.tables and kernel_of(name) == form
    ]
    found = np.concatenate(errors) if errors else np.zeros(0)
    if not len(found):
        return None
    return 100 * float(np.median(found)), 100 * float(np.percentile(found, 90))


_FORMS = {"gemm": "gemm", "prefill": "prefill", "decode": "decode"}
"""Which form prices a family that was fitted, by the family's name."""
