"""The command table of `twin-calibrate`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from calibrate.accuracy_command import accuracy_command
from calibrate.fit_command import fit_command
from calibrate.holdout_command import holdout_command
from calibrate.import_command import import_command
from calibrate.import_layers import import_layers_command
from calibrate.measure_command import measure_command
from calibrate.plot_command import plot_command
from calibrate.replay_command import replay_command
from calibrate.storage_command import storage_command
from calibrate.validate_command import validate_command
from twin.cli.output import (
    JSON_HELP,
    check_alone,
    check_distinct,
    check_file,
    check_json,
    emit_json,
)
from twin.cli.running import run

app = typer.Typer(
    name="twin-calibrate",
    help="Measure, fit and judge the twin's models against data.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


app.command("measure")(measure_command)
app.command("fit")(fit_command)
app.command("plot")(plot_command)
app.command("accuracy")(accuracy_command)
app.command("import")(import_command)
app.command("holdout")(holdout_command)
app.command("import-layers")(import_layers_command)
app.command("replay")(replay_command)
app.command("storage")(storage_command)
app.command("validate")(validate_command)


@app.callback()
def _root() -> None:
    """Keep `capacity` a sub-command while it is the only one."""


@app.command("capacity")
def capacity_command(
    table: Annotated[str, typer.Argument(metavar="CSV", help="Measured KV-cache sizes.")],
    json_file: Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)] = None,
    markdown_file: Annotated[
        str | None,
        typer.Option(
            "--markdown",
            metavar="FILE",
            help="Write the table as Markdown; a page with the table's markers keeps its text.",
        ),
    ] = None,
    fit: Annotated[
        bool,
        typer.Option("--fit", help="Refit the overhead and print the source of overhead.py."),
    ] = False,
) -> None:
    """Hold the KV-capacity model against a table of sizes that engines printed."""
    from calibrate.capacity import fit_all, leave_one_out, literal, predict, read_rows
    from calibrate.capacity.report import as_json, as_markdown, into_page, print_table
    from twin.files import write_text

    check_json(json_file, inputs=[table])
    if markdown_file is not None:
        check_file(markdown_file, "--markdown", inputs=[table])
    outputs = {"--json": json_file, "--markdown": markdown_file}
    check_distinct(outputs)
    if fit:
        check_alone("--fit", outputs)
    rows = read_rows(table)
    if fit:
        typer.echo(literal(fit_all(rows)), nl=False)
        return
    predictions, left_out = predict(rows), leave_one_out(rows)
    print_table(predictions, left_out, to_stderr=json_file == "-")
    if markdown_file is not None:
        page = Path(markdown_file)
        before = page.read_text(encoding="utf-8") if page.is_file() else ""
        write_text(page, into_page(before, as_markdown(predictions, left_out)))
    emit_json(as_json(predictions, left_out), json_file)


def main() -> None:
    """Entry point of the `twin-calibrate` command."""
    sys.exit(run(app))
