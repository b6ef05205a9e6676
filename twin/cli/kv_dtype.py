"""`twin kv-dtype`: whether a KV dtype pays for a scenario, and from which context on."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from twin.cli.output import JSON_HELP, check_json, console_for, emit_json

if TYPE_CHECKING:
    from rich.console import Console

    from twin.memory.kv_advice import Run

_KEY = "policy.kv_cache_dtype"


def kv_dtype_command(
    scenario: Annotated[str, typer.Argument(help="A scenario file, or a built-in example's name.")],
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="NAME", help="KV dtype to judge against 16 bits.")
    ] = "fp8",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override any key; may be repeated."),
    ] = None,
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """Say whether a smaller KV dtype pays: its break-even context, and this scenario's own."""
    from twin.load.overrides import parse_assignments
    from twin.memory.kv_advice import advise
    from twin.report.kv_dtype import print_kv_advice

    check_json(json_file, inputs=[scenario])
    overrides = parse_assignments(set_ or [])
    _check(dtype, overrides)
    console = console_for(json_file)
    plain = _run(console, scenario, {**overrides, _KEY: "auto"})
    found = advise(plain, _run(console, scenario, {**overrides, _KEY: dtype}))
    print_kv_advice(console, found)
    emit_json(found.as_dict(), json_file)


def _check(dtype: str, overrides: dict[str, Any]) -> None:
    from twin.errors import InputError
    from twin.llm.quantization import kv_dtype

    if kv_dtype(dtype) == "bf16":
        raise InputError(
            "is 16 bits, what others are judged against", where=f"--dtype {dtype}",
            remedy="name fp8 or another",
        )  # fmt: skip
    if _KEY in overrides:
        raise InputError("both dtypes are set here", where=f"--set {_KEY}", remedy="use --dtype")


def _run(console: "Console", name: str, overrides: dict[str, Any]) -> "Run":
    from twin.cli.progress import shown_progress
    from twin.engine import simulate
    from twin.load import load_scenario
    from twin.memory.kv_advice import Run, check_pools
    from twin.report.metrics import summarise

    loaded = load_scenario(name, overrides)
    check_pools(loaded, name)
    with shown_progress(console, False) as advance:
        result = simulate(loaded, advance)
    return Run(loaded, result, summarise(result))
