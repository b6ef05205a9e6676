"""From our own `Measurement` rows to a hardware profile."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calibrate.measurement import Measurement, read_measurements
from calibrate.sources.tabulate import Columns, tabulate
from hwmodels.gpus import GPUS
from hwmodels.measured.tables import COLUMNS, kernel_of
from hwmodels.profile import HardwareProfile, Provenance, profile_name
from twin.errors import InputError


def import_measurements(path: Path, gpu: str, engine: str, version: str | None) -> HardwareProfile:
    """Return a profile of the rows of one GPU and engine in a file, nothing fitted yet.

    Args:
        version: needed if the file holds several versions of the engine.

    Raises:
        InputError: bad rows, none of that GPU and engine, or several versions, drivers or L2
            states of one kernel.
    """
    every = read_measurements(path)
    rows = [row for row in every if (row.gpu, row.engine) == (gpu, engine)]
    if version is not None:
        rows = [row for row in rows if row.engine_version == version]
    where = f"{path}, {gpu} under {engine}"
    if not rows or gpu not in GPUS:
        held = sorted({f"{row.gpu} under {row.engine} {row.engine_version}" for row in every})
        raise InputError(
            "no measurements of that GPU and engine",
            where=where if version is None else f"{where} {version}",
            remedy="the file holds " + ", ".join(held),
        )
    return profile_of_rows(rows, f"own measurements, {path.name}", where)


def profile_of_rows(
    rows: Sequence[Measurement], source: str, where: str, facts: Mapping[str, Any] | None = None
) -> HardwareProfile:
    """Return a profile of one GPU's rows under one engine version, nothing fitted yet.

    Args:
        rows: at least one.
        source: where they come from, for the provenance.
        where: what messages name.
        facts: more facts of the profile.

    Raises:
        InputError: rows of several GPUs, versions, or L2 states of decode attention, or of a
            kernel that changed between them.
    """
    gpu, engine = _only(rows, "gpu", where), _only(rows, "engine", where)
    engine_version = _only(rows, "engine_version", where)
    decode = [row for row in rows if kernel_of(row.kernel) == "decode"]
    told = {"decode_l2": _only(decode, "l2", where)} if decode else {}
    tables = {
        kernel: _table(_of_one_source([row for row in rows if row.kernel == kernel], where))
        for kernel in sorted({row.kernel for row in rows})
    }
    versions = {f"driver {row.driver}, CUDA {row.cuda}" for row in rows}
    libraries = dict(sorted({item for row in rows for item in row.versions.items()}))
    return HardwareProfile(
        name=profile_name(gpu, engine, engine_version),
        gpu=gpu,
        engine=engine,
        engine_version=engine_version,
        kind="kernels",
        provenance=Provenance(
            source=source,
            licence="Apache-2.0",
            date=max(row.measured_on for row in rows),
            versions={"host": "; ".join(sorted(versions)), **libraries},
            notes=(
                _clocks(rows),
                f"{len({row.kernel_sha256 for row in rows})} kernel sources",
            ),
        ),
        tables=tables,
        facts={**told, **(facts or {})},
    )


def _clocks(rows: Sequence[Measurement]) -> str:
    clocks = sorted(row.sm_clock_hz / 1e6 for row in rows if row.sm_clock_hz is not None)
    if not clocks:
        return "SM clock unknown"
    return f"SM clock {clocks[0]:.0f}-{clocks[-1]:.0f} MHz while measuring"


def _only(rows: Sequence[Measurement], field: str, where: str) -> str:
    values = sorted({str(getattr(row, field)) for row in rows})
    if len(values) > 1:
        raise InputError(
            f"rows of several {field}: {', '.join(values)}",
            where=where,
            remedy="keep one kind of rows in a file, or name the version",
        )
    return values[0]


def _of_one_source(rows: Sequence[Measurement], where: str) -> Sequence[Measurement]:
    """Refuse rows of one kernel before and after it changed: they are of two kernels."""
    if len({row.kernel_sha256 for row in rows}) > 1:
        raise InputError(
            f"{rows[0].kernel} was measured from several versions of its source",
            where=where,
            remedy="measure into a new folder",
        )
    return rows


def _table(rows: Sequence[Measurement]) -> Columns:
    axes = COLUMNS[kernel_of(rows[0].kernel)]
    shape = {axis: np.array([row.shape[axis] for row in rows], dtype=np.int64) for axis in axes}
    table, _ = tabulate(shape, np.array([row.seconds_median for row in rows]))
    return table
