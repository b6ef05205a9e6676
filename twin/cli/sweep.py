"""`twin sweep` and `twin size`: a scenario at other loads, and on how many GPUs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twin.cli.output import (
    JSON_HELP,
    check_distinct,
    check_file,
    check_json,
    console_for,
    emit_json,
)

if TYPE_CHECKING:
    from twin.load.inputs import Inputs
    from twin.scenario import ScenarioFile

_SCENARIO_HELP = "A scenario file, or a built-in example's name."
_SET = typer.Option("--set", metavar="KEY=VALUE", help="Override any key; may be repeated.")


def sweep_command(
    scenario: Annotated[str, typer.Argument(help=_SCENARIO_HELP)],
    set_: Annotated[list[str] | None, _SET] = None,
    factors: Annotated[
        str | None,
        typer.Option(metavar="LIST", help="Multiples of the scenario's load, comma-separated."),
    ] = None,
    resolution: Annotated[
        float | None,
        typer.Option(metavar="X", help="How closely to bracket where the SLO breaks; 0: not."),
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no table.")] = False,
) -> None:
    """Run a scenario at several loads: up to which it holds, and what breaks first."""
    from twin.cli.progress import shown_runs
    from twin.files import write_text
    from twin.sweep.answer import sweep_answer
    from twin.sweep.drawing import sweep_page
    from twin.sweep.sweep import DEFAULT_FACTORS, RESOLUTION, sweep_load
    from twin.sweep.terminal import print_sweep

    asked = DEFAULT_FACTORS if factors is None else _factors(factors)
    finer = RESOLUTION if resolution is None else _resolution(resolution)
    file, inputs = _read(scenario, set_, {"--html": html}, json_file)
    with shown_runs(quiet) as told:
        found = sweep_load(file, inputs, asked, resolution=finer, progress=told)
    if not quiet:
        print_sweep(console_for(json_file), found)
    if html is not None:
        write_text(html, sweep_page(found))
    emit_json(sweep_answer(found), json_file)


def size_command(
    scenario: Annotated[str, typer.Argument(help=_SCENARIO_HELP)],
    set_: Annotated[list[str] | None, _SET] = None,
    most: Annotated[int, typer.Option(metavar="N", help="Replicas, at most.")] = 64,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no table.")] = False,
) -> None:
    """Find the smallest number of replicas that meets a scenario's SLO."""
    from twin.cli.progress import shown_runs
    from twin.sweep.sizing import size_replicas
    from twin.sweep.terminal import print_sizing

    file, inputs = _read(scenario, set_, {}, json_file)
    with shown_runs(quiet) as told:
        found = size_replicas(file, inputs, most=most, progress=told)
    if not quiet:
        print_sizing(console_for(json_file), found)
    emit_json(found.as_dict(), json_file)
    if found.replicas is None:
        raise typer.Exit(1)


def _read(
    scenario: str,
    assignments: list[str] | None,
    files: dict[str, str | None],
    json_file: str | None,
) -> tuple[ScenarioFile, Inputs]:
    """Return the scenario and its files; no output may replace one of them."""
    from twin.load import read_scenario_file
    from twin.load.inputs import read_inputs
    from twin.load.overrides import parse_assignments

    def check(inputs: list[Any]) -> None:
        check_json(json_file, inputs=inputs)
        for option, name in files.items():
            if name is not None:
                check_file(name, option, inputs=inputs)

    check([scenario])
    check_distinct({**files, "--json": json_file})
    file, base = read_scenario_file(scenario, parse_assignments(assignments or []))
    inputs = read_inputs(file, base, where=scenario)
    check([path for path, _ in inputs.workload.traces])
    return file, inputs


def _factors(text: str) -> list[float]:
    from twin.errors import InputError

    found = []
    for word in text.split(","):
        try:
            value = float(word)
        except ValueError:
            value = math.nan
        if not (value > 0 and math.isfinite(value)):
            raise InputError(
                f"{word.strip()!r} is no multiple of a load",
                where="--factors",
                remedy="give numbers above 0, as in 0.5,1,2",
            )
        found.append(value)
    return found


def _resolution(value: float) -> float:
    from twin.errors import InputError

    if not (value >= 0 and math.isfinite(value)):
        raise InputError(f"{value:g} is none", where="--resolution", remedy="give 0 or more")
    return value or math.inf
