"""Azure LLM inference traces (Azure Public Dataset, Splitwise ISCA 2024 and the 2024 release).

Columns TIMESTAMP (`2023-11-16 18:15:46.6805900`: up to nine fractional digits, perhaps `+00:00`
at the end), ContextTokens, GeneratedTokens; in any order, others are ignored.
"""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from twin.errors import InputError
from twin.workload.readers.base import Records
from twin.workload.readers.bounded import text_lines
from twin.workload.readers.fields import place, shown, token_count
from twin.workload.trace import Finish, Floats

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")

_TIMESTAMP = re.compile(
    r"((?:19[7-9]|20\d|21\d)\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d{1,9})?)(Z|[+-][01]\d:?[0-5]\d)?"
)
_TIME_REMEDY = "write it like 2023-11-16 18:15:46.6805900"


class AzureLlmCsv:
    """See the module."""

    description = "Azure LLM inference trace: CSV with TIMESTAMP, ContextTokens, GeneratedTokens"
    finish: Finish = "stop"

    def recognises(self, head: str) -> bool:
        """Whether the first line names the three columns."""
        lines = head.lstrip().splitlines()
        names = [name.lower() for name in _cells(lines[0])] if lines else []
        return all(column.lower() in names for column in COLUMNS)

    def read(self, path: Path) -> Records:
        """See `Reader.read`."""
        lines = text_lines(path)
        row, header = next(lines, (1, ""))
        width = len(_cells(header))
        at_time, at_prompt, at_output = _positions(header, path, row)
        records, stamps = Records(), list[str]()
        for row, line in lines:
            cells = line.split(",")
            if len(cells) != width:
                raise _wrong_row(line, header, width, path, row)
            prompt, output = cells[at_prompt], cells[at_output]
            records.prompt_tokens.append(_count(prompt, COLUMNS[1], line, header, (path, row)))
            records.output_tokens.append(_count(output, COLUMNS[2], line, header, (path, row)))
            stamps.append(cells[at_time])
            records.rows.append(row)
        records.times_s = _seconds(stamps, records.rows, path)
        return records


def _cells(line: str) -> list[str]:
    return [cell.strip().strip('"') for cell in line.split(",")]


def _positions(header: str, path: Path, row: int) -> tuple[int, int, int]:
    names = [name.lower() for name in _cells(header)]
    for column in COLUMNS:
        if names.count(column.lower()) != 1:
            problem = "is missing" if column.lower() not in names else "stands twice"
            raise InputError(
                f"column {column} {problem} in {shown(header)}",
                where=place(path, row),
                remedy="the header must be " + ",".join(COLUMNS),
            )
    first, second, third = (names.index(column.lower()) for column in COLUMNS)
    return first, second, third


def _count(text: str, column: str, line: str, header: str, at: tuple[Path, int]) -> int:
    if text.isascii() and text.isdigit() and len(text) < 8 and (count := int(text)) > 0:
        return count
    if line == header:
        raise InputError("the header stands here again", where=place(*at), remedy="remove the row")
    return token_count(text.strip().strip('"'), column, *at)


def _wrong_row(line: str, header: str, width: int, path: Path, row: int) -> InputError:
    return InputError(
        f"{line.count(',') + 1} columns in {shown(line)}",
        where=place(path, row),
        remedy=f"the header has {width}: {shown(header)}",
    )


def _seconds(stamps: list[str], rows: list[int], path: Path) -> Floats:
    """Return seconds since the earliest timestamp; integers of nanoseconds keep every digit."""
    bare, offsets_min = list[str](), list[int]()
    for stamp, row in zip(stamps, rows, strict=True):
        match = _TIMESTAMP.fullmatch(stamp.strip().strip('"'))
        if match is None:
            raise _not_a_time(stamp, path, row)
        bare.append(match.group(1))
        offsets_min.append(_offset_min(match.group(2)) if match.group(2) else 0)
    try:
        times_ns: NDArray[np.int64] = np.array(bare, dtype="datetime64[ns]").astype(np.int64)
    except ValueError:  # a thirteenth month: find the row
        for stamp, row in zip(bare, rows, strict=True):
            try:
                np.datetime64(stamp, "ns")
            except ValueError:
                raise _not_a_time(stamp, path, row) from None
        raise
    times_ns -= np.array(offsets_min, dtype=np.int64) * 60_000_000_000
    return (times_ns - (times_ns.min() if times_ns.size else 0)) / 1e9


def _offset_min(zone: str) -> int:
    if zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return -minutes if zone[0] == "-" else minutes


def _not_a_time(stamp: str, path: Path, row: int) -> InputError:
    return InputError(
        f"TIMESTAMP {shown(stamp)} is not a date and time",
        where=place(path, row),
        remedy=_TIME_REMEDY,
    )
