"""The unpacked package or its wheel, seen as tables."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twin.errors import InputError

Rows = dict[str, NDArray[Any]]
"""Columns by name, all of one length."""

_MARK = "systems/data/"


class Archive:
    """Reads the package from a folder or a wheel.

    Args:
        path: a wheel, or a folder that holds `systems/data` at any depth.

    Raises:
        InputError: there is no such data at the path.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._zip: zipfile.ZipFile | None = None
        if path.is_dir():
            files = (file for file in path.rglob("*.parquet") if _MARK in file.as_posix())
            found = {_key(file.as_posix()): str(file) for file in files}
        elif zipfile.is_zipfile(path):
            self._zip = zipfile.ZipFile(path)
            names = (name for name in self._zip.namelist() if name.endswith(".parquet"))
            found = {_key(name): name for name in names if _MARK in name}
        else:
            found = {}
        self._files = dict(sorted(found.items()))
        if not self._files:
            raise InputError(
                "no kernel tables here",
                where=str(path),
                remedy="name the wheel of aiconfigurator-core, or the folder it was unpacked to",
            )

    def gpus(self) -> list[str]:
        """Return the GPUs that have tables."""
        return sorted({key.partition("/")[0] for key in self._files})

    def versions(self, gpu: str, family: str, engine: str, table: str) -> list[str]:
        """Return the versions of an engine that a table of a GPU exists for."""
        prefix, suffix = f"{gpu}/{family}/{engine}/", f"/{table}_perf.parquet"
        return [
            key.removeprefix(prefix).removesuffix(suffix)
            for key in self._files
            if key.startswith(prefix) and key.endswith(suffix)
        ]

    def rows(self, gpu: str, family: str, engine: str, version: str, table: str) -> Rows:
        """Return a table's columns; text columns are arrays of str.

        Raises:
            InputError: the file cannot be read.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        key = f"{gpu}/{family}/{engine}/{version}/{table}_perf.parquet"
        name = self._files[key]
        try:
            if self._zip is None:
                content = pq.read_table(name)
            else:
                content = pq.read_table(io.BytesIO(self._zip.read(name)))
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"cannot read this table ({error})", where=name) from None
        return {
            column: np.array(content.column(column).to_pylist())
            if pa.types.is_string(content.column(column).type)
            or pa.types.is_large_string(content.column(column).type)
            or pa.types.is_dictionary(content.column(column).type)
            else content.column(column).to_numpy()
            for column in content.column_names
        }


def _key(name: str) -> str:
    return name[name.index(_MARK) + len(_MARK) :]


def where(rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    """Return the rows of a mask."""
    return {name: column[mask] for name, column in rows.items()}
