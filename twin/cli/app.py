"""The command table of `twin`."""

from typing import Annotated

import typer

from twin import __version__
from twin.cli import (
    cache,
    capacity,
    catalogue,
    compare,
    conformance,
    export,
    import_config,
    kv_dtype,
    memory,
    scenario,
    search,
    simulate,
    sweep,
    what_if,
)

app = typer.Typer(
    name="twin",
    help="servetwin: forecast LLM serving on GPUs from a trace, a model, a GPU and a policy.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("simulate")(simulate.simulate_command)
app.command("app")(what_if.app_command)
app.command("sweep")(sweep.sweep_command)
app.command("size")(sweep.size_command)
app.command("search")(search.search_command)
app.command("capacity")(capacity.capacity_command)
app.command("memory")(memory.memory_command)
app.command("kv-dtype")(kv_dtype.kv_dtype_command)
app.command("cache")(cache.cache_command)
app.command("compare")(compare.compare_command)
app.command("export")(export.export_command)
app.command("import-config")(import_config.import_config_command)
app.command("conformance")(conformance.conformance_command)
app.command("models")(catalogue.models_command)
app.command("gpus")(catalogue.gpus_command)
app.add_typer(scenario.app, name="scenario")


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"servetwin {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version
