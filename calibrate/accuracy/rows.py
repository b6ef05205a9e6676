"""Rows of a table of measured closed-loop serving points."""

import csv
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.llm.engine_version import ENGINES

GPUS_OF_A_NODE = 8

_NEEDED = (
    "id", "gpu", "engine", "engine_version", "model", "precision", "gemm_quant", "isl", "osl",
    "concurrency", "tp", "pp", "attention_dp", "moe_tp", "moe_ep", "lengths", "ttft_ms", "tpot_ms",
)  # fmt: skip
_SIZES = re.compile(r"_tp(\d+)(?:_\d+)?_ep(\d+|none)(?:_\d+)?_\d+$")
_LENGTHS = ("exact", "uniform_0.8_1.0")


@dataclass(frozen=True, slots=True)
class Row:
    """One measured point: a fixed number of clients against one replica.

    Attributes:
        row_id: its name in the table.
        precision: as given; empty: the checkpoint's own.
        gemm_quant: how the dense products are quantised, as given.
        isl, osl: nominal prompt and answer tokens.
        exact: every length is the nominal one; else uniform on [0.8, 1] of it.
        tp: tensor parallel ranks of the attention part.
        attention_dp: data parallel replicas of the attention part.
        ep: ranks that whole experts are dealt to; 1: experts are cut like other matrices.
        ttft_s, tpot_s: measured means; answers of one token have no TPOT (NaN).
        where: file and line, for messages.
    """

    row_id: str
    gpu: str
    engine: str
    version: str
    model: str
    precision: str
    gemm_quant: str
    isl: int
    osl: int
    concurrency: int
    tp: int
    pp: int
    attention_dp: int
    ep: int
    exact: bool
    ttft_s: float
    tpot_s: float
    where: str

    @property
    def group(self) -> tuple[str, str, str, str]:
        """(gpu, engine, model, precision)."""
        return self.gpu, self.engine, self.model, self.precision

    @property
    def measurement(self) -> tuple[object, ...]:
        """What names a measurement; some stand in the table under several ids."""
        return (
            self.gpu, self.engine, self.isl, self.osl, self.concurrency, self.tp,
            self.attention_dp, self.ep, f"{self.ttft_s:.5f}"[:7], f"{self.tpot_s:.5f}",
        )  # fmt: skip


def read_tables(paths: Iterable[str | Path]) -> list[Row]:
    """Return the rows of several tables as one.

    Raises:
        InputError: as `read_rows`, or a name stands for two rows.
    """
    rows: dict[str, Row] = {}
    for row in (row for path in paths for row in read_rows(path)):
        if row.row_id in rows:
            raise InputError(
                f"id {row.row_id!r} stands in {rows[row.row_id].where} already",
                where=row.where,
                remedy="give each row an id of its own, and each table once",
            )
        rows[row.row_id] = row
    return list(rows.values())


def read_rows(path: str | Path) -> list[Row]:
    """Return the rows of a table.

    Raises:
        InputError: the file cannot be read, lacks a column, or a cell is not what it must be.
    """
    file = Path(path)
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            reader = csv.DictReader(text)
            missing = [name for name in _NEEDED if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(
                    "has no column " + ", ".join(missing),
                    where=str(file),
                    remedy="give a table of closed-loop serving rows",
                )
            rows = [_row(cells, f"{file}:{reader.line_num}") for cells in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read ({reason})", where=str(file)) from None
    if not rows:
        raise InputError("holds no rows", where=str(file), remedy="give one line a measurement")
    return rows


def _row(cells: Mapping[str | None, Any], where: str) -> Row:
    if None in cells:
        raise InputError(
            f"{len(cells[None])} cells more than columns",
            where=where,
            remedy="put a cell that holds a comma in quotes",
        )
    text = {name: (cells.get(name) or "").strip() for name in _NEEDED}
    engine = _one_of(text["engine"], ENGINES, where, "engine")
    lengths = _one_of(text["lengths"], _LENGTHS, where, "lengths")
    tp, attention_dp, ep = _parallelism(text, where)
    osl = _count(text, "osl", where)
    return Row(
        row_id=text["id"],
        gpu=text["gpu"],
        engine=engine,
        version=text["engine_version"],
        model=text["model"],
        precision=text["precision"],
        gemm_quant=text["gemm_quant"],
        isl=_count(text, "isl", where),
        osl=osl,
        concurrency=_count(text, "concurrency", where),
        tp=tp,
        pp=_count(text, "pp", where),
        attention_dp=attention_dp,
        ep=ep,
        # "gap_analysis" rows repeat, rounded, measurements that the table also holds as uniform.
        exact=lengths == "exact" and "gap_analysis" not in text["id"],
        ttft_s=_milliseconds(text, "ttft_ms", where),
        tpot_s=_milliseconds(text, "tpot_ms", where) if osl > 1 else math.nan,
        where=where,
    )


def _parallelism(text: Mapping[str, str], where: str) -> tuple[int, int, int]:
    """Return (tp, attention dp, ep) of a row.

    Where experts are spread, parts of the public tables multiply the sizes by `moe_ep` once more
    (the same measurements stand there as tp 8 and as tp 64, on nodes of 8 GPUs). The ids name
    the sizes that ran and win; without them, sizes beyond one node are divided again.
    """
    tp, dp = _count(text, "tp", where), _count(text, "attention_dp", where, blank=1)
    ep = max(1, _count(text, "moe_ep", where, blank=1, least=0))
    named = _SIZES.search(text["id"])
    if named and named[2] != "none":
        gpus, ep = int(named[1]), int(named[2])
    else:
        gpus = tp * dp
        if gpus > GPUS_OF_A_NODE and gpus % ep == 0:
            gpus //= ep
    if tp == 1 and dp > 1:
        return 1, gpus, ep
    return gpus, 1, ep


def _one_of(text: str, choices: tuple[str, ...], where: str, column: str) -> str:
    if text not in choices:
        raise InputError(
            f"{column} is {text!r}", where=where, remedy="choose one of " + ", ".join(choices)
        )
    return text


def _count(
    text: Mapping[str, str], column: str, where: str, *, blank: int | None = None, least: int = 1
) -> int:
    value = _number(text[column], blank)
    if value is None or value < least or value != int(value):
        raise InputError(
            f"{column} is {text[column]!r}", where=where, remedy=f"a whole number from {least} on"
        )
    return int(value)


def _milliseconds(text: Mapping[str, str], column: str, where: str) -> float:
    value = _number(text[column], None)
    if value is None or value <= 0:
        raise InputError(
            f"{column} is {text[column]!r}", where=where, remedy="milliseconds above 0"
        )
    return value / 1e3


def _number(text: str, blank: int | None) -> float | None:
    if not text:
        return blank
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
