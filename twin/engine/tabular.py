"""Simulation results as pandas DataFrames and Parquet files."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.engine.result import BOUNDS, RequestTable, SimulationResult, StepTable
from twin.errors import ServetwinError
from twin.files import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

OUTCOMES = ("finished", "rejected", "unfinished", "failed", "timed_out")
"""Names of `RequestTable.outcome` codes, as the `outcome` column spells them."""

_OF_CLIENTS = ("attempt", "origin", "served_by", "left_s")
"""Columns of requests that say nothing unless clients try again."""

_COLUMN_CODES = {"outcome": OUTCOMES, "bound": BOUNDS}


def to_pandas(result: SimulationResult) -> tuple[Any, Any]:
    """Return (requests, steps) as DataFrames: one row a request or step, SI units, same names.

    `requests` is indexed by request index. `outcome` and `bound` are categoricals of names.

    Raises:
        ServetwinError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise ServetwinError(
            "DataFrames need pandas; install it with `pip install pandas`"
        ) from None
    frames = []
    for table in (result.requests, result.steps):
        columns: dict[str, Any] = {}
        for name, values in _columns(table, result).items():
            codes = _COLUMN_CODES.get(name)
            columns[name] = pd.Categorical.from_codes(values, list(codes)) if codes else values
        frames.append(pd.DataFrame(columns))
    requests, steps = frames
    requests.index.name = "request"
    steps.index.name = "step"
    return requests, steps


def to_parquet(result: SimulationResult, directory: str) -> None:
    """Write `requests.parquet` and `steps.parquet` into the existing folder `directory`.

    Each file carries the run's scalars (`kv_blocks`, `block_size`, `replicas`, `steps_taken`,
    `stride`, `simulated_s`) as JSON under the key `servetwin` of its schema metadata.

    Raises:
        InputError: the folder does not exist or cannot be written.
    """
    import pyarrow.parquet as pq

    folder = Path(directory)
    for name, table in (("requests", result.requests), ("steps", result.steps)):
        arrow = _arrow(_columns(table, result)).replace_schema_metadata(
            {"servetwin": _scalars(result)}
        )
        with whole_file(folder / f"{name}.parquet") as temporary:
            pq.write_table(arrow, temporary, compression="zstd")


def _columns(table: RequestTable | StepTable, result: SimulationResult) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    left_out: tuple[str, ...] = ()
    if isinstance(table, RequestTable):
        if result.inputs.get("clients") is None:
            left_out = _OF_CLIENTS
        # The client's own id comes first, where a reader looks for it.
        columns["name"] = np.array(table.name, dtype=object)
    for name in type(table).__dataclass_fields__:
        if name not in left_out:
            columns.setdefault(name, getattr(table, name))
    return columns


def _arrow(table: dict[str, Any]) -> "pa.Table":
    import pyarrow as pa

    columns: dict[str, pa.Array] = {}
    for name, values in table.items():
        codes = _COLUMN_CODES.get(name)
        if codes:
            indices = pa.array(values.astype(np.int8), type=pa.int8())
            columns[name] = pa.DictionaryArray.from_arrays(indices, pa.array(list(codes)))
        elif name == "name":
            columns[name] = pa.array(list(values), type=pa.string())
        elif values.dtype.kind == "f":
            # NaN marks a time that did not happen: a null, so that SQL averages leave it out.
            columns[name] = pa.array(values, mask=np.isnan(values))
        else:
            columns[name] = pa.array(values)
    return pa.table(columns)


def _scalars(result: SimulationResult) -> str:
    return json.dumps(
        {
            "kv_blocks": int(result.kv_blocks),
            "block_size": int(result.block_size),
            "replicas": int(result.replicas),
            "steps_taken": int(result.steps_taken),
            "stride": int(result.stride),
            "simulated_s": float(result.simulated_s),
        }
    )
