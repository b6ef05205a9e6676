"""`twin scenario`: starters, examples and the JSON schema."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from twin.cli.output import JSON_HELP, console_for, emit_json

app = typer.Typer(
    help="Write a starter scenario, list the examples, print the JSON schema.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("init")
def init_command(
    path: Annotated[str, typer.Argument(help="File to write; - for standard output.")] = "-",
    example: Annotated[
        str, typer.Option(metavar="NAME", help="Built-in example to start from.")
    ] = "chat-h100",
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a commented scenario to start from."""
    from twin.errors import InputError
    from twin.files import write_text
    from twin.load.examples import FOLDER, example_names
    from twin.naming import lookup

    name = lookup({n: n for n in example_names()}, example, "example", where="--example")
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    if path == "-":
        sys.stdout.write(text)
        return
    if Path(path).exists() and not force:
        raise InputError("exists already", where=path, remedy="give --force to replace it")
    text = text.replace(f"name: {name}\n", f"name: {Path(path).stem}\n")
    write_text(path, text.replace(f"simulate {name}", f"simulate {path}"))
    typer.echo(f"wrote {path}; run: twin simulate {path}")


@app.command("examples")
def examples_command(
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
) -> None:
    """List the built-in example scenarios."""
    from rich.table import Table

    from twin.load.examples import example_names
    from twin.load.scenario_file import read_scenario_file

    rows = [
        {"name": name, "description": read_scenario_file(name)[0].description}
        for name in example_names()
    ]
    table = Table("name", "description")
    for row in rows:
        table.add_row(row["name"], row["description"])
    console_for(json_file).print(table)
    emit_json(rows, json_file)


@app.command("schema")
def schema_command(
    policy: Annotated[bool, typer.Option("--policy", help="The schema of a policy file.")] = False,
) -> None:
    """Print the JSON schema of a scenario (or policy) file, for editors."""
    import json

    from twin.load.schema import policy_schema, scenario_schema

    typer.echo(json.dumps(policy_schema() if policy else scenario_schema(), indent=2))
