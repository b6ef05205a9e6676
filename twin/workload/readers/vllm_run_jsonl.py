"""JSON lines with arrival_s, prompt_tokens, output_tokens: the plain format of this project.

Optional keys, each in every row or in none: request_id, priority, tenant, and prefix identity as
block_tokens with prompt_block_ids, one id for each *full* block of the prompt.
"""

from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.workload.readers.base import Records
from twin.workload.readers.blocks import BlockColumn
from twin.workload.readers.bounded import json_lines
from twin.workload.readers.fields import label, place, required, shown, timestamp, token_count
from twin.workload.trace import Finish

MAX_PRIORITY = 2**31


class VllmRunJsonl:
    """See the module."""

    description = "JSON lines with arrival_s, prompt_tokens, output_tokens, perhaps block ids"
    finish: Finish = "length"

    def recognises(self, head: str) -> bool:
        """Whether the first line is an object with arrival_s and prompt_tokens."""
        lines = head.lstrip().splitlines()
        return (
            bool(lines)
            and lines[0].startswith("{")
            and all(f'"{key}"' in lines[0] for key in ("arrival_s", "prompt_tokens"))
        )

    def read(self, path: Path) -> Records:
        """See `Reader.read`."""
        records, blocks, times_s = Records(), BlockColumn("prompt_block_ids", path), list[float]()
        columns = _OptionalColumns(path)
        for row, record in json_lines(path):
            time_s = required(record, "arrival_s", path, row)
            length = required(record, "prompt_tokens", path, row)
            prompt = token_count(length, "prompt_tokens", path, row)
            length = required(record, "output_tokens", path, row)
            times_s.append(timestamp(time_s, "arrival_s", path, row))
            records.prompt_tokens.append(prompt)
            records.output_tokens.append(token_count(length, "output_tokens", path, row))
            records.rows.append(row)
            columns.take(record, row)
            hashes = blocks.hashes(record, row)
            if hashes is not None:
                blocks.add(hashes, _block_tokens(record, len(hashes), prompt, (path, row)), prompt)
        records.times_s = times_s
        records.segments = blocks.table()
        columns.give(records)
        return records


class _OptionalColumns:
    """request_id, tenant and priority: each in every row or in none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._values: dict[str, list[Any]] = {"request_id": [], "tenant": [], "priority": []}
        self._rows = 0

    def take(self, record: dict[str, Any], row: int) -> None:
        """Take one row."""
        for key, values in self._values.items():
            if (key in record) != (len(values) > 0) and self._rows:
                raise InputError(
                    f"{key} {'is missing' if values else 'appears here first'}",
                    where=place(self._path, row),
                    remedy="give it in every row or in none",
                )
            if key in record:
                values.append(self._checked(key, record[key], row))
        self._rows += 1

    def _checked(self, key: str, value: object, row: int) -> str | int:
        if key != "priority":
            return label(value)
        if type(value) is int and abs(value) <= MAX_PRIORITY:
            return value
        raise InputError(f"priority {shown(value)} is not an integer", where=place(self._path, row))

    def give(self, records: Records) -> None:
        """Put the columns that exist into `records`."""
        records.names = self._values["request_id"] or None
        records.tenant = self._values["tenant"] or None
        records.priority = self._values["priority"] or None


def _block_tokens(record: dict[str, Any], num_ids: int, prompt: int, at: tuple[Path, int]) -> int:
    size = token_count(required(record, "block_tokens", *at), "block_tokens", *at)
    if num_ids != prompt // size:
        raise InputError(
            f"{num_ids} prompt_block_ids for a prompt of {prompt} tokens",
            where=place(*at),
            remedy=f"one for each full {size}-token block: {prompt // size}",
        )
    return size
