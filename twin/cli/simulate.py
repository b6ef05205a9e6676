"""`twin simulate`: a scenario in, a forecast out."""

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twin.cli.output import JSON_HELP, check_distinct, check_writable, console_for, emit_json

if TYPE_CHECKING:
    from rich.console import Console

    from twin.engine.result import SimulationResult
    from twin.scenario import Scenario

_ENGINE_HELP = (
    "fast; compiled or interpreted, which fast chooses from; or reference, the plain one, which "
    "takes every step. Results are the same."
)


def simulate_command(
    scenario: Annotated[str, typer.Argument(help="A scenario file, or a built-in example's name.")],
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override any key; may be repeated."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Write report.html, Parquet tables, trace and metrics here."
        ),
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
    engine: Annotated[str, typer.Option("--engine", metavar="NAME", help=_ENGINE_HELP)] = "fast",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no table.")] = False,
) -> None:
    """Forecast latency, throughput and KV-cache use of a scenario."""
    from twin.engine.run import ENGINES
    from twin.load import load_scenario
    from twin.load.overrides import parse_assignments
    from twin.naming import lookup

    lookup(dict.fromkeys(ENGINES), engine, "engine")
    check_writable(json_file, out, inputs=[scenario])
    check_distinct({"--out": out, "--json": json_file})
    overrides = parse_assignments(set_ or [])
    loaded = load_scenario(scenario, overrides)
    check_writable(json_file, out, inputs=[path for path, _ in loaded.workload.traces])
    console = console_for(json_file)
    started = time.perf_counter()
    result = _run(loaded, console, quiet, engine)
    wall_s = time.perf_counter() - started

    from twin.report.metrics import summarise

    summary = summarise(result)
    inputs = {**result.inputs, "command": _command(scenario, set_ or [])}
    if not quiet:
        from twin.report.terminal import print_report

        print_report(console, summary, inputs, result.notes)
    if out is not None:
        _write(result, summary, inputs, out, console)
    figures = {**summary, "wall_s": wall_s, "inputs": result.inputs, "notes": list(result.notes)}
    emit_json(figures, json_file)


def _run(loaded: "Scenario", console: "Console", quiet: bool, engine: str) -> "SimulationResult":
    from twin.cli.progress import shown_progress
    from twin.engine import simulate

    with shown_progress(console, quiet) as advance:
        return simulate(loaded, advance, engine=engine)


def _write(
    result: "SimulationResult",
    summary: dict[str, Any],
    inputs: dict[str, Any],
    out: str,
    console: "Console",
) -> None:
    from dataclasses import replace

    from twin.report.output import write_outputs

    paths = write_outputs(replace(result, inputs=inputs), summary, out)
    report = next(path for path in paths if path.name == "report.html")
    console.print(f"Report: {report}", soft_wrap=True)


def _command(scenario: str, assignments: list[str]) -> str:
    import shlex

    parts = ["twin", "simulate", scenario]
    for assignment in assignments:
        parts += ["--set", assignment]
    return shlex.join(parts)
