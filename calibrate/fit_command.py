"""`twin-calibrate fit`: rows of a folder become a hardware profile."""

from typing import Annotated

import typer

from twin.cli.output import JSON_HELP


def fit_command(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="What measure wrote.")],
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Profile to write (.npz).")],
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Which rows are held out.")
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Fit the physics forms and the memory's parameters, and judge them on held-out rows."""
    from pathlib import Path

    from calibrate.measuring.fit import fit_folder
    from calibrate.measuring.judgement import as_json, print_judgement
    from hwmodels.measured.held_out import SEED
    from hwmodels.profile import write_profile
    from twin.cli.output import check_distinct, check_file, check_json, console_for, emit_json
    from twin.files import write_bytes

    rows = [path for path in Path(folder).glob("*") if path.is_file()]
    check_file(out, "--out", inputs=rows)
    check_json(json_file, inputs=rows)
    check_distinct({"--out": out, "--json": json_file})
    fitted = fit_folder(Path(folder), SEED if seed is None else seed)
    target = Path(out)
    if fitted.pretended and not target.stem.endswith("-dry-run"):
        # So that no pretended profile is ever taken for a measured one.
        target = target.with_name(f"{target.stem}-dry-run{target.suffix}")
        check_file(str(target), "--out", inputs=rows)
    write_bytes(target, write_profile(fitted.profile))
    print_judgement(fitted, target, console_for(json_file))
    emit_json(as_json(fitted, target), json_file)
