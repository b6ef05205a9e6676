"""`Measurement`: one row of our own kernel measurements, in CSV or Parquet.

A row is one kernel at one shape. Files have the columns of `Measurement`; the shape goes into
columns `shape.<axis>` and library versions into `version.<library>`, empty where a kernel has no
such axis.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from hwmodels.measured.tables import COLUMNS, FROM_ZERO, kernel_of
from twin.errors import InputError
from twin.files import whole_file, write_text

Text = Annotated[str, Field(min_length=1, max_length=200)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=1e-12, le=3600, allow_inf_nan=False)]
"""No launch is shorter or longer: what lies beyond is in another unit."""
Count = Annotated[int, Field(ge=0, le=2**40)]


class Measurement(BaseModel):
    """One kernel at one shape on one GPU.

    Attributes:
        kernel: the table it belongs to, as `hwmodels.measured.tables` names them.
        shape: its axes; exactly those of the kernel's table.
        seconds_median, seconds_p90: over `repetitions` launches.
        sm_clock_hz, memory_clock_hz: read while measuring; None: nothing told them.
        kernel_sha256: of the kernel's source, so that a changed kernel is another measurement.
        l2: whether what the kernel reads was left in the L2 by the launch before.
        versions: of libraries, by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kernel: Text
    shape: Mapping[str, Count]
    seconds_median: Seconds
    seconds_p90: Seconds
    repetitions: Annotated[int, Field(ge=20)]
    gpu: Text
    engine: Text
    engine_version: Text
    sm_clock_hz: Positive | None = None
    memory_clock_hz: Positive | None = None
    driver: Text
    cuda: Text
    kernel_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    l2: Literal["warm", "cold"]
    measured_on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    versions: Mapping[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _consistent(self) -> "Measurement":
        axes = COLUMNS.get(kernel_of(self.kernel))
        if axes is None:
            raise ValueError(
                f"unknown kernel {self.kernel!r}; known are {', '.join(sorted(COLUMNS))}"
            )
        if set(self.shape) != set(axes):
            raise ValueError(f"{self.kernel} has the axes {', '.join(axes)}")
        empty = sorted(axis for axis in axes if not self.shape[axis] and axis not in FROM_ZERO)
        if empty:
            raise ValueError(f"shape.{empty[0]} is 0; at least 1 is needed")
        if self.seconds_p90 < self.seconds_median:
            raise ValueError("seconds_p90 is below seconds_median")
        return self


_COLUMNS = "a row is one kernel at one shape; docs/profiles.md has the columns"
_PLAIN = [name for name in Measurement.model_fields if name not in ("shape", "versions")]


def read_measurements(path: Path) -> list[Measurement]:
    """Return the rows of a CSV or Parquet file.

    Raises:
        InputError: no such file, no rows, or a row that is wrong; it names file, row and column.
    """
    found = []
    for number, raw in enumerate(_raw_rows(path), start=1):
        try:
            found.append(Measurement.model_validate(_nested(raw)))
        except ValidationError as error:
            missing = [str(one["loc"][0]) for one in error.errors() if one["type"] == "missing"]
            if missing:
                raise InputError(
                    "lacks " + ", ".join(missing),
                    where=f"{path}, row {number}",
                    remedy=_COLUMNS,
                ) from None
            first = error.errors()[0]
            column = ".".join(str(part) for part in first["loc"])
            raise InputError(
                first["msg"].removeprefix("Value error, "),
                where=f"{path}, row {number}" + (f", column {column}" if column else ""),
            ) from None
    if not found:
        raise InputError("no measurements", where=str(path), remedy=_COLUMNS)
    return found


def write_measurements(path: Path, rows: Iterable[Measurement]) -> None:
    """Write rows as CSV, or as Parquet to a name that ends so; whole or not at all."""
    flat = [_flat(row) for row in rows]
    names = [*_PLAIN, *sorted({name for row in flat for name in row} - set(_PLAIN))]
    if path.suffix == ".parquet":
        _write_parquet(path, names, flat)
        return
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    write_text(path, buffer.getvalue())


def _write_parquet(path: Path, names: list[str], flat: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {name: pa.array([row.get(name) for row in flat], _arrow_type(name)) for name in names}
    )
    with whole_file(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def _arrow_type(name: str) -> Any:
    """Typed by the column, not by its cells: a column may be empty."""
    import pyarrow as pa

    if name.startswith("shape.") or name == "repetitions":
        return pa.int64()
    return pa.float64() if name.startswith("seconds_") or name.endswith("_hz") else pa.string()


def _raw_rows(path: Path) -> Iterable[Mapping[str, Any]]:
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            rows: list[Mapping[str, Any]] = pq.read_table(path).to_pylist()
            return rows
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"cannot read measurements ({reason})",
            where=str(path),
            remedy="name a CSV or Parquet file",
        ) from None


def _nested(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Gather `shape.*` and `version.*`; empty cells are absent."""
    row: dict[str, Any] = {"shape": {}, "versions": {}}
    for name, value in raw.items():
        if value is None or value == "":
            continue
        group, _, rest = str(name).partition(".")
        if rest and group in ("shape", "version"):
            row["shape" if group == "shape" else "versions"][rest] = value
        else:
            row[str(name)] = value
    return row


def _flat(row: Measurement) -> dict[str, Any]:
    flat = {name: getattr(row, name) for name in _PLAIN}
    flat.update({f"shape.{axis}": size for axis, size in row.shape.items()})
    flat.update({f"version.{library}": version for library, version in row.versions.items()})
    return flat
