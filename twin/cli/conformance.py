"""`twin conformance`: replay a real engine's recorded decisions through our scheduler."""

from typing import Annotated, Any

import typer

from twin.cli.output import JSON_HELP, console_for, emit_json


def conformance_command(
    files: Annotated[list[str], typer.Argument(help="Recordings, .json or .json.gz.")],
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)
    ] = None,
) -> None:
    """Compare recorded scheduler decisions with ours, step by step; exit 1 on a difference."""
    from twin.conformance import replay_file
    from twin.conformance.render import print_report

    console = console_for(json_file)
    rows: list[dict[str, Any]] = []
    for path in files:
        report = replay_file(path)
        print_report(console, path, report)
        rows.append({"file": path, **report.as_dict()})
    emit_json(rows, json_file)
    if not all(row["identical"] == row["steps"] for row in rows):
        raise typer.Exit(1)
