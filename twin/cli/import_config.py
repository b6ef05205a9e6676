"""`twin import-config`: what is deployed, as a scenario."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from twin.cli.output import check_file

if TYPE_CHECKING:
    from twin.export.reading.given import Given

_FILE_HELP = (
    "A file with vLLM's, SGLang's or TensorRT-LLM's YAML, a Kubernetes manifest, Helm values of "
    "llm-d, or a command line; - for standard input."
)


def import_config_command(
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help=_FILE_HELP)] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose it is: vllm, sglang or trtllm.")
    ] = None,
    args: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="A command line; what it says goes before the file."),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="SCENARIO", help="Take GPU, workload, SLO and cluster from here."),
    ] = None,
    gpu: Annotated[str | None, typer.Option(metavar="NAME", help="A name of twin gpus.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override any key; may be repeated."),
    ] = None,
    out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write the scenario here, not to the screen.")
    ] = None,
) -> None:
    """Read a running engine's configuration into a scenario. Keys and tokens are never copied."""
    from pathlib import Path

    from twin.export.reading.scenario import Base, read_base, scenario_of
    from twin.files import write_text
    from twin.load.overrides import parse_assignments

    if out is not None:
        check_file(out, "--out", inputs=[name for name in (file, base) if name])
    given = _given(file, args, engine)
    rest = Base(read_base(base), gpu, parse_assignments(set_ or []))
    plain = file if file not in (None, "-") else None
    name = Path(out or plain or "imported").stem
    found = scenario_of(given, rest, name=name, where=plain or "--args")
    for note in found.notes:
        typer.echo(note, err=True)
    if out is None:
        sys.stdout.write(found.text)
        return
    write_text(out, found.text)
    typer.echo(f"wrote {out}; run: twin simulate {out}")


def _given(file: str | None, args: str | None, engine: str | None) -> "Given":
    from pathlib import Path

    from twin.errors import InputError
    from twin.export.engines import ENGINE_FORMATS
    from twin.export.reading.command_line import shell_words
    from twin.export.reading.sources import combined, read_command, read_text_source
    from twin.load.documents import read_text
    from twin.naming import lookup

    if engine is not None:
        lookup(ENGINE_FORMATS, engine, "engine", where="--engine")
    if file is None and args is None:
        raise InputError("nothing to read", where="twin import-config",
                         remedy="name a file, or give --args")  # fmt: skip
    found = None
    if file is not None:
        text = sys.stdin.read() if file == "-" else read_text(Path(file), "configuration")
        found = read_text_source(text, file, engine)
    if args is None:
        return found  # type: ignore[return-value]  # one of them was given
    told = read_command(shell_words(args), "--args", found.engine if found else engine)
    return told if found is None else combined(found, told)
