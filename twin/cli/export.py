"""`twin export`: a policy as files that an engine or a cluster accepts."""

import sys
from typing import Annotated

import typer

from twin.cli.output import check_folder

_SCENARIO_HELP = "A scenario file, an example's name, or a folder that twin search wrote."
_TO_HELP = "vllm, sglang, trtllm, kubernetes, llm_d or dynamo."


def export_command(
    scenario: Annotated[str, typer.Argument(help=_SCENARIO_HELP)],
    to: Annotated[str, typer.Option("--to", metavar="TARGET", help=_TO_HELP)],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override any key; may be repeated."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Write all files here; without it the main one is shown."),
    ] = None,
) -> None:
    """Write a policy as configuration files, with its forecast and caveats at their head."""
    from pathlib import Path

    from twin.errors import InputError
    from twin.export.targets import export
    from twin.files import whole_directory, write_text
    from twin.load.overrides import parse_assignments

    if out is not None:
        check_folder(out, "--out")
        if Path(out).is_dir() and Path(scenario).is_dir() and Path(out).samefile(scenario):
            raise InputError("is the input", where=f"--out {out}", remedy="name another folder")
    files = export(scenario, to, parse_assignments(set_ or []))
    main, *others = files
    if out is None:
        sys.stdout.write(files[main])
        if others:
            typer.echo(f"also with --out DIR: {', '.join(others)}", err=True)
        return
    with whole_directory(out) as folder:
        for name, text in files.items():
            write_text(folder / name, text)
    for name in files:
        typer.echo(f"wrote {Path(out) / name}")
