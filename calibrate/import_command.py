"""`twin-calibrate import`: from kernel measurements to a profile file."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from hwmodels.profile import HardwareProfile

Importer = Callable[[Path, str, str, str | None], HardwareProfile]
_TABLES = "*_perf.*"
"""Files of an unpacked package that are read."""


def _aiconfigurator(path: Path, gpu: str, engine: str, version: str | None) -> HardwareProfile:
    from calibrate.sources.aiconfigurator import import_profile

    return import_profile(path, gpu, engine, version)


def _measurements(path: Path, gpu: str, engine: str, version: str | None) -> HardwareProfile:
    from calibrate.sources.measurements import import_measurements

    return import_measurements(path, gpu, engine, version)


SOURCES: dict[str, Importer] = {
    "aiconfigurator": _aiconfigurator,
    "measurements": _measurements,
}
"""Importers by name."""


def import_command(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="aiconfigurator or measurements.")
    ],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Wheel, folder or file to read.")],
    gpu: Annotated[str, typer.Option("--gpu", help="GPU, for example h100_sxm.")],
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Profile to write (.npz).")],
    engine: Annotated[str, typer.Option("--engine", help="Serving engine.")] = "vllm",
    version: Annotated[
        str | None, typer.Option("--version", help="Engine version wanted; the nearest is taken.")
    ] = None,
    fit: Annotated[
        bool, typer.Option("--fit/--no-fit", help="Refit the physics forms and judge (minutes).")
    ] = True,
) -> None:
    """Make a hardware profile from kernel measurements, fit it, and judge it on held-out rows."""
    from dataclasses import replace

    from hwmodels.gpus import GPUS
    from hwmodels.profile import write_profile
    from twin.cli.output import check_file
    from twin.files import write_bytes
    from twin.naming import lookup

    lookup(GPUS, gpu, "GPU")
    importer = lookup(SOURCES, source, "source")
    check_file(out, "--out", inputs=[path, *Path(path).rglob(_TABLES)])
    profile = importer(Path(path), gpu, engine, version)
    if fit:
        from calibrate.holdout import held_out_errors, without_random_rows
        from calibrate.kernel_fits import with_fits
        from hwmodels.measured.held_out import SEED

        profile = with_fits(profile, without_random_rows(profile, SEED), SEED)
        profile = replace(profile, held_out=held_out_errors(profile, SEED))
    data = write_profile(profile)
    write_bytes(Path(out), data)
    rows = sum(len(table["seconds"]) for table in profile.tables.values())
    typer.echo(
        f"{out}: {profile.name}, {len(profile.tables)} tables, {rows} rows, {len(data)} bytes"
    )
