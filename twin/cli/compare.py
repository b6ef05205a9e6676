"""`twin compare A B`: two forecasts side by side."""

from typing import Annotated

import typer

from twin.cli.output import JSON_HELP, check_writable, console_for, emit_json

SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key on both sides."),
]
SetBOption = Annotated[
    list[str] | None,
    typer.Option("--set-b", metavar="KEY=VALUE", help="Override a key on side B only."),
]


def compare_command(
    a: Annotated[str, typer.Argument(help="Scenario, policy, result folder or result JSON.")],
    b: Annotated[
        str | None, typer.Argument(help="The same kind of thing; left out: A with --set-b.")
    ] = None,
    set_: SetOption = None,
    set_b: SetBOption = None,
    scenario: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Scenario that two policies are tried in."),
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Put two forecasts side by side: what differs in their inputs, how every figure changes."""
    from twin.cli.sides import Comparand, load_sides
    from twin.compare import compare
    from twin.compare.noise import NOISE_FLOOR
    from twin.compare.render import comparison_report

    check_writable(json_file, None, inputs=[path for path in (a, b, scenario) if path])
    console = console_for(json_file)
    sides: tuple[Comparand, Comparand] = load_sides(
        (a, b if b is not None else a), (set_ or [], (set_ or []) + (set_b or [])), scenario
    )
    comparison = compare(sides[0].as_dict(), sides[1].as_dict(), relative_error=NOISE_FLOOR)
    console.print(comparison_report(comparison))
    emit_json({"a": sides[0].name, "b": sides[1].name, **comparison.to_dict()}, json_file)
