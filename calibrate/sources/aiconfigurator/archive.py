"""The unpacked package or its wheel, seen as tables; of releases old and new."""

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twin.errors import InputError

Rows = dict[str, NDArray[Any]]
"""Columns by name, all of one length."""

_MARK = "systems/data/"
_ENGINES = ("vllm", "sglang", "trtllm")
# Folders of each table in today's layout; releases before aiconfigurator-core kept all tables of
# an engine version in one folder, as CSV named .txt at first.
_FAMILIES = {
    "gemm": "gemm", "context_attention": "attention", "generation_attention": "attention",
    "moe": "moe", "custom_allreduce": "comm", "nccl": "comm",
    "context_mla": "mla", "generation_mla": "mla",
}  # fmt: skip
_SUFFIXES = ("_perf.parquet", "_perf.txt")
# Older tables name 16-bit kernels after the other 16-bit format.
_SAME_KERNELS = {"float16": "bfloat16"}


class Archive:
    """Reads the package from a folder or a wheel.

    Args:
        path: a wheel, or a folder that holds one `systems/data` at any depth.

    Attributes:
        release: the package and its version.

    Raises:
        InputError: there is no such data at the path, or that of several releases.
    """

    def __init__(self, path: Path) -> None:
        self._zip: zipfile.ZipFile | None = None
        if path.is_dir():
            names = [file.as_posix() for file in path.rglob("*_perf.*")]
        elif zipfile.is_zipfile(path):
            self._zip = zipfile.ZipFile(path)
            names = self._zip.namelist()
        else:
            names = []
        found = ((_key(name), name) for name in names)
        self._files = dict(sorted((key, name) for key, name in found if key is not None))
        self.release = _release(path, names)
        if not self._files:
            raise InputError(
                "no kernel tables here",
                where=str(path),
                remedy="name a wheel of aiconfigurator-core or aiconfigurator, or the folder it "
                "was unpacked to",
            )
        roots = sorted({name[: name.index(_MARK)] for name in names if _key(name) is not None})
        if len(roots) > 1:
            raise InputError(
                f"holds {len(roots)} releases: {', '.join(roots[:3])}{' …' * (len(roots) > 3)}",
                where=str(path),
                remedy="name one of them",
            )

    def gpus(self) -> list[str]:
        """Return the GPUs that have tables."""
        return sorted({key.partition("/")[0] for key in self._files})

    def versions(self, gpu: str, family: str, engine: str, table: str) -> list[str]:
        """Return the versions of an engine that a table of a GPU exists for."""
        prefix, suffix = f"{gpu}/{family}/{engine}/", f"/{table}"
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

        name = self._files[f"{gpu}/{family}/{engine}/{version}/{table}"]
        try:
            content = Path(name).read_bytes() if self._zip is None else self._zip.read(name)
            return _columns(_read(name, content))
        except (OSError, pa.ArrowException) as error:
            raise InputError(f"cannot read this table ({error})", where=name) from None


def _read(name: str, content: bytes) -> Any:
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    stream = io.BytesIO(content)
    return pq.read_table(stream) if name.endswith(".parquet") else csv.read_csv(stream)


def _columns(table: Any) -> Rows:
    import pyarrow as pa

    found: Rows = {}
    for name in table.column_names:
        column = table.column(name)
        kind = column.type
        if (
            pa.types.is_string(kind)
            or pa.types.is_large_string(kind)
            or pa.types.is_dictionary(kind)
        ):
            found[name] = np.array([_SAME_KERNELS.get(v, v) for v in column.to_pylist()])
        else:
            found[name] = column.to_numpy()
    return found


def _release(path: Path, names: list[str]) -> str:
    """Return the package and its version, as its wheel or its metadata folder is named."""
    seen = [path.name, *names, *(entry.name for entry in path.glob("*.dist-info"))]
    for name in seen:
        found = re.search(r"(aiconfigurator(?:_core)?)-(\d+(?:\.\d+)*)", name)
        if found:
            return f"{found[1].replace('_', '-')} {found[2]}"
    return "aiconfigurator, release unknown"


def _key(name: str) -> str | None:
    """Return gpu/family/engine/version/table; None: no table of a kind that is read."""
    suffix = next((suffix for suffix in _SUFFIXES if name.endswith(suffix)), None)
    if suffix is None or _MARK not in name:
        return None
    parts = name[name.index(_MARK) + len(_MARK) :].removesuffix(suffix).split("/")
    if len(parts) == 4 and parts[1] in (*_ENGINES, "nccl") and parts[3] in _FAMILIES:
        parts.insert(1, _FAMILIES[parts[3]])
    return "/".join(parts) if len(parts) == 5 else None


def where(rows: Rows, mask: NDArray[np.bool_]) -> Rows:
    """Return the rows of a mask."""
    return {name: column[mask] for name, column in rows.items()}
