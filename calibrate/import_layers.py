"""`twin-calibrate import-layers`: a folder of layer measurements becomes a profile file."""

from pathlib import Path
from typing import Annotated

import typer


def import_layers_command(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="A layer profile: meta.yaml and its CSV files.")
    ],
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="The profile to write (.npz).")],
    tp: Annotated[
        int, typer.Option("--tp", min=1, help="Tensor parallelism the tables were taken for.")
    ] = 1,
) -> None:
    """Turn measurements of whole layers into a hardware profile."""
    from calibrate.sources.layer_profile import read_layer_profile
    from hwmodels.profile import write_profile
    from twin.cli.output import check_file
    from twin.files import write_bytes

    check_file(out, "--out", inputs=[*Path(folder).rglob("*.csv"), Path(folder) / "meta.yaml"])
    profile = read_layer_profile(Path(folder), tp)
    write_bytes(Path(out), write_profile(profile))
    rows = {name: next(iter(table.values())).size for name, table in profile.tables.items()}
    typer.echo(
        f"{out}: {profile.facts['llm']} on {profile.gpu}, vLLM {profile.engine_version}, tp {tp}; "
        + ", ".join(f"{name} {count:,} rows" for name, count in rows.items())
    )
