"""Reads tables of KV-cache sizes that engines printed at start."""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hwmodels.gpus import GPUS
from twin.errors import InputError
from twin.llm.arch import ModelArch
from twin.llm.capacity import CapacityQuery
from twin.llm.engine_version import Version, engine_of, parse_version
from twin.llm.models import find_model
from twin.naming import remedy_for
from twin.units import parse_bytes

REQUIRED = (
    "id", "model", "gpu", "tp", "engine_version", "gpu_mem_util", "block_size", "num_blocks",
)  # fmt: skip
_STATED_MEMORY = re.compile(r"\(\s*([\d.]+\s*(?:GiB|MiB|GB|MB|B))\s*\)", re.IGNORECASE)
_STATED_FREE = re.compile(r"free\s+([\d.]+\s*(?:GiB|MiB|GB|MB|B))", re.IGNORECASE)
_SHARE = re.compile(r"(?<![\d.])(0?\.\d+|1\.0)(?![\d.])")
_SEQUENCES = re.compile(r"max_num_seqs\D{0,3}(\d{1,12})")

# More would not be a count, and would overflow a float.
_MAX_DIGITS = 12


@dataclass(frozen=True, slots=True)
class CapacityRow:
    """One measured KV-cache size.

    Attributes:
        where: file and row, for messages.
        query: what to ask the model; None if the network is not in the table.
        tokens: KV tokens as the engine printed them.
    """

    row_id: str
    where: str
    model: str
    gpu: str
    tp: int
    engine: str
    version: str
    blocks: int
    tokens: int
    query: CapacityQuery | None

    @property
    def version_key(self) -> tuple[str, Version]:
        """What rows of one engine version share; 0.0.0 if the table names none."""
        return self.engine, parse_version(self.version) or (0, 0, 0)


def read_rows(path: str | Path) -> list[CapacityRow]:
    """Return the rows of a capacity table.

    Raises:
        InputError: the file cannot be read, lacks a column, or a cell makes no sense; names file,
            row and column.
    """
    file = Path(path)
    try:
        with file.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.DictReader(stream)
            missing = [name for name in REQUIRED if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(
                    f"no column {missing[0]}",
                    where=str(file),
                    remedy="a capacity table has " + ", ".join(REQUIRED),
                )
            return [_row(cells, f"{file}, row {reader.line_num}") for cells in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read ({error})", where=str(file)) from None


def total_memory_bytes(gpu: str, where: str = "") -> int:
    """Return the memory of one GPU that free text names: "H100-80GB SXM", "RTX 5090 (31.84 GiB)".

    A size in brackets wins over the table of GPUs.
    """
    stated = _STATED_MEMORY.search(gpu)
    if stated:
        return parse_bytes(stated.group(1), where=where)
    plain = _plain(gpu)
    for name, spec in GPUS.items():
        if _plain(name.removesuffix("_sxm")) in plain:
            return spec.visible_memory_bytes
    raise InputError(
        f"unknown GPU {gpu!r}", where=f"{where}, gpu" if where else "", remedy=remedy_for(gpu, GPUS)
    )


def _row(cells: dict[str, str], where: str) -> CapacityRow:
    cells = {key: (value or "").strip() for key, value in cells.items() if isinstance(key, str)}
    blocks = _count(cells, "num_blocks", where)
    block_size = _count(cells, "block_size", where)
    arch = find_model(cells["model"])
    return CapacityRow(
        row_id=cells["id"],
        where=where,
        model=cells["model"],
        gpu=cells["gpu"],
        tp=_count(cells, "tp", where, default=1),
        engine=engine_of(cells["engine_version"]),
        version=cells["engine_version"],
        blocks=blocks,
        tokens=_count(cells, "kv_tokens", where, default=blocks * block_size),
        query=_query(cells, arch, where) if arch else None,
    )


def _query(cells: dict[str, str], arch: ModelArch, where: str) -> CapacityQuery:
    share = _SHARE.search(cells["gpu_mem_util"])
    free = _STATED_FREE.search(cells["gpu_mem_util"])
    weights = cells.get("weights_GiB")
    return CapacityQuery(
        arch=arch,
        total_memory_bytes=total_memory_bytes(cells["gpu"], where),
        engine=engine_of(cells["engine_version"]),
        engine_version=cells["engine_version"],
        tp=_count(cells, "tp", where, default=1),
        gpu_memory_utilization=float(share.group(1)) if share else None,
        max_model_len=_largest(cells.get("max_model_len", "")),
        max_num_batched_tokens=_smallest(cells.get("max_num_batched_tokens", "")),
        max_num_seqs=_sequences(cells, where),
        block_size=_count(cells, "block_size", where),
        kv_cache_dtype=_kv_cache_dtype(cells, where),
        weights_bytes=parse_bytes(f"{weights} GiB", where=where) if weights else None,
        free_after_load_bytes=parse_bytes(free.group(1), where=where) if free else None,
    )


def _kv_cache_dtype(cells: dict[str, str], where: str) -> str:
    width = cells.get("kv_bytes_per_elem", "")
    if width in ("", "2"):
        return "auto"
    if width == "1":
        return "fp8"
    raise InputError(
        f"{width!r} bytes an element", where=f"{where}, kv_bytes_per_elem", remedy="give 1 or 2"
    )


def _sequences(cells: dict[str, str], where: str) -> int | None:
    if cells.get("max_num_seqs"):
        return _count(cells, "max_num_seqs", where)
    stated = _SEQUENCES.search(cells.get("note", ""))
    return int(stated.group(1)) if stated else None


def _count(cells: dict[str, str], column: str, where: str, default: int | None = None) -> int:
    text = cells.get(column, "")
    if not text and default is not None:
        return default
    if not text.isdecimal() or len(text) > _MAX_DIGITS or int(text) < 1:
        raise InputError(
            f"{text[:40]!r} is not a whole number above 0 of at most {_MAX_DIGITS} digits",
            where=f"{where}, {column}",
            remedy="give for example 16",
        )
    return int(text)


def _numbers(text: str) -> Iterable[int]:
    return (int(number) for number in re.findall(r"\d+", text) if len(number) <= _MAX_DIGITS)


def _largest(text: str) -> int | None:
    return max(_numbers(text), default=None)


def _smallest(text: str) -> int | None:
    """Of several token budgets that gave the same block count ("1024/2048"), the smallest."""
    return min(_numbers(text), default=None)


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]", "", text.lower())
