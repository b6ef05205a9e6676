"""`twin models` and `twin gpus`: what the twin knows by name."""

from typing import Annotated, Any

import typer

from twin.cli.output import JSON_HELP, console_for, emit_json

JsonOption = Annotated[str | None, typer.Option("--json", metavar="FILE", help=JSON_HELP)]


def models_command(json_file: JsonOption = None) -> None:
    """List the built-in networks with their sizes."""
    from rich.table import Table

    from twin.llm.kv_cache import kv_bytes_per_token_per_gpu
    from twin.llm.models import MODELS
    from twin.llm.weights import parameter_count, weights_bytes
    from twin.units import GIB

    rows: list[dict[str, Any]] = []
    for name, arch in sorted(MODELS.items()):
        rows.append(
            {
                "name": name,
                "parameters": parameter_count(arch),
                "weights_bytes": weights_bytes(arch),
                "kv_bytes_per_token": kv_bytes_per_token_per_gpu(arch),
                "layers": arch.num_layers,
                "hidden_size": arch.hidden_size,
                "heads": arch.num_heads,
                "kv_heads": arch.num_kv_heads,
                "max_position": arch.max_position,
                "source": arch.source,
            }
        )
    table = Table(title="Models", title_justify="left")
    for heading in ("name", "parameters", "weights", "KV a token", "layers", "heads/KV", "context"):
        table.add_column(heading, justify="left" if heading == "name" else "right")
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['parameters'] / 1e9:,.2f} B",
            f"{row['weights_bytes'] / GIB:,.1f} GiB",
            f"{row['kv_bytes_per_token'] / 1024:,.1f} KiB",
            str(row["layers"]),
            f"{row['heads']}/{row['kv_heads']}",
            f"{row['max_position']:,}",
        )
    console_for(json_file).print(table)
    emit_json(rows, json_file)


def gpus_command(json_file: JsonOption = None) -> None:
    """List the GPUs, and what their durations rest on."""
    from rich.table import Table

    from hwmodels.gpus import GPUS
    from hwmodels.provenance import durations_rest_on, profiles_of
    from twin.units import GIB

    rows: list[dict[str, Any]] = []
    for name, gpu in GPUS.items():
        rows.append(
            {
                "name": name,
                "memory_bytes": gpu.memory_bytes,
                "hbm_bytes_per_s": gpu.hbm_bytes_per_s,
                "bf16_flops_per_s": gpu.flops_per_s["bf16"],
                "durations": durations_rest_on(name),
                "profiles": [profile.name for profile in profiles_of(name)],
            }
        )
    table = Table(title="GPUs", title_justify="left")
    left = ("name", "profiles", "durations")
    for heading in ("name", "memory", "bandwidth", "bf16 dense", "profiles", "durations"):
        table.add_column(heading, justify="left" if heading in left else "right")
    for row in rows:
        table.add_row(
            row["name"],
            f"{row['memory_bytes'] / GIB:.1f} GiB",
            f"{row['hbm_bytes_per_s'] / 1e9:,.0f} GB/s",
            f"{row['bf16_flops_per_s'] / 1e12:,.0f} TFLOP/s",
            "\n".join(name.removeprefix(f"{row['name']}-") for name in row["profiles"]),
            row["durations"],
        )
    console_for(json_file).print(table)
    emit_json(rows, json_file)
