"""`twin memory`: what a scenario's KV layout means, by block size and dtype."""

from typing import Annotated, Any

import typer

from twin.cli.output import (
    JSON_HELP,
    check_alone,
    check_distinct,
    check_file,
    check_json,
    console_for,
    emit_json,
)


def memory_command(
    scenario: Annotated[
        str | None, typer.Argument(help="A scenario file, or a built-in example's name.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override any key; may be repeated."),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a page (.html) or the chart (.svg).")
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
    claims: Annotated[
        bool,
        typer.Option("--claims", help="Print what is claimed of KV caches, and what is computed."),
    ] = False,
) -> None:
    """Say where the bytes of the KV cache lie and go: pages, sectors, tails, TLB misses."""
    from twin.errors import InputError

    check_json(json_file, inputs=[] if scenario is None else [scenario])
    if scenario is None and not claims:
        raise InputError("no scenario", where="twin memory", remedy="name one, or give --claims")
    if scenario is None:
        check_alone("--claims without a scenario", {"--set": set_ or None, "--out": out})
    _check_out(out, scenario, json_file)
    console, data = console_for(json_file), {}
    if scenario is not None:
        data = _explained(console, scenario, set_ or [], out)
    if claims:
        from twin.memory.claims import judged_claims
        from twin.report.memory import print_claims

        judged = judged_claims()
        print_claims(console, judged)
        data["claims"] = [claim.as_dict() for claim in judged]
    emit_json(data, json_file)


def _explained(console: Any, name: str, assignments: list[str], out: str | None) -> dict[str, Any]:
    from twin.files import write_text
    from twin.load import load_scenario
    from twin.load.overrides import parse_assignments
    from twin.memory.explanation import explain
    from twin.report.memory import notes_of, print_memory

    found = explain(load_scenario(name, parse_assignments(assignments)))
    print_memory(console, found)
    if out is not None:
        from twin.report.memory_page import memory_page, memory_svg

        write_text(out, memory_svg(found) if out.endswith(".svg") else memory_page(found))
    return {**found.as_dict(), "notes": notes_of(found)}


def _check_out(out: str | None, scenario: str | None, json_file: str | None) -> None:
    from twin.errors import InputError

    if out is None:
        return
    if not out.endswith((".html", ".svg")):
        raise InputError("is neither a page nor a drawing", where=f"--out {out}",
                         remedy="end it in .html or .svg")  # fmt: skip
    check_file(out, "--out", inputs=[] if scenario is None else [scenario])
    check_distinct({"--out": out, "--json": json_file})
