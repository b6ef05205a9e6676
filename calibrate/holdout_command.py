"""`twin-calibrate holdout`: the held-out error of a profile's tables."""

import difflib
from pathlib import Path
from typing import Annotated

import typer

from hwmodels.profile import HardwareProfile, shipped_profiles
from twin.cli.output import JSON_HELP


def holdout_command(
    profile: Annotated[
        str, typer.Argument(metavar="PROFILE", help="A shipped profile, or a file.")
    ],
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Which rows are held out.")
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Take rows away, price them from what is left, and print the errors by kernel family."""
    from dataclasses import asdict

    from rich.table import Table

    from calibrate.holdout import MIN_ROWS, held_out_errors
    from hwmodels.measured.held_out import SEED
    from twin.cli.output import check_json, console_for, emit_json

    opened = open_named(profile)
    check_json(json_file, inputs=[shipped_profiles().get(profile, Path(profile))])
    errors = held_out_errors(opened, SEED if seed is None else seed)
    table = Table(title=f"{opened.name}: held-out error", title_justify="left")
    for heading in ("kernels", "held out", "rows", "median %", "P90 %"):
        table.add_column(heading, justify="left" if heading in ("kernels", "held out") else "right")
    for family, error in errors.items():
        table.add_row(
            family,
            error.split,
            f"{error.rows:,}",
            f"{error.median_pct:.1f}",
            f"{error.p90_pct:.1f}",
        )
    nothing = f"{opened.name}: nothing to judge; no family has {MIN_ROWS} rows to hold out"
    console_for(json_file).print(table if errors else nothing, soft_wrap=not errors)
    found = {family: asdict(error) for family, error in errors.items()}
    emit_json({"profile": opened.name, "held_out": found}, json_file)


def open_named(profile: str) -> HardwareProfile:
    """Return a shipped profile by name, or one in a file.

    Raises:
        InputError: there is neither, or it cannot be used.
    """
    from hwmodels.profile import ProfileError, open_profile
    from twin.errors import InputError
    from twin.naming import remedy_for

    shipped = shipped_profiles()
    path = shipped.get(profile, Path(profile))
    if not path.exists():
        if path.suffix == ".npz" or len(path.parts) > 1:
            raise InputError("no such file", where=profile, remedy=_near(path))
        raise InputError(f"no profile {profile!r}", remedy=remedy_for(profile, shipped))
    try:
        opened = open_profile(path)
    except ProfileError as error:
        raise InputError(str(error)) from None
    if opened.kind != "kernels":
        raise InputError(
            f"holds {opened.kind}, not single kernels",
            where=str(path),
            remedy="name a kernel profile",
        )
    return opened


def _near(path: Path) -> str:
    """Name the dry run's profile beside a missing one, or another that is spelled alike."""
    dry = path.with_name(f"{path.stem}-dry-run{path.suffix}")
    if dry.is_file():
        return f"did you mean {str(dry)!r}?"
    beside = sorted(one.stem for one in path.parent.glob("*.npz"))
    alike = difflib.get_close_matches(path.stem, beside, n=1, cutoff=0.7)
    name = f"{alike[0]}.npz" if alike else ""
    return f"did you mean {str(path.with_name(name))!r}?" if name else "check the path"
