"""`twin conformance`: replay a real engine's recorded decisions through our scheduler."""

from dataclasses import asdict
from typing import Annotated

import typer

from twin.cli.output import JSON_HELP, check_writable, console_for, emit_json


def conformance_command(
    files: Annotated[list[str], typer.Argument(help="Recordings, .json or .json.gz.")],
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Compare recorded scheduler decisions with ours, step by step; exit 1 on a difference."""
    from twin.conformance import render, replay_file

    check_writable(json_file, None, inputs=files)
    console = console_for(json_file)
    reports = []
    for path in files:
        report = replay_file(path)
        render(report, console)
        reports.append({"file": path, **asdict(report)})
    if len(reports) > 1:
        passed = sum(report["first_difference"] is None for report in reports)
        console.print(f"{passed} of {len(reports)} files identical")
    emit_json(reports, json_file)
    if any(report["first_difference"] is not None for report in reports):
        raise typer.Exit(1)
