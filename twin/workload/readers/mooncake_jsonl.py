"""Mooncake traces (FAST'25): JSON lines with timestamp (ms), input_length, output_length, hash_ids.

`hash_ids` holds one id for each 512-token block of the prompt, the last of which may cover a
partial block; a file without any hash_ids is read as one without prefix identity.
"""

from pathlib import Path

from twin.errors import InputError
from twin.workload.readers.base import Records
from twin.workload.readers.blocks import BlockColumn
from twin.workload.readers.bounded import json_lines
from twin.workload.readers.fields import place, required, timestamp, token_count
from twin.workload.trace import Finish

BLOCK_TOKENS = 512


class MooncakeJsonl:
    """See the module."""

    description = "Mooncake trace: JSON lines with timestamp (ms), input_length, hash_ids"
    finish: Finish = "stop"

    def recognises(self, head: str) -> bool:
        """Whether the first line is an object with Mooncake's keys."""
        lines = head.lstrip().splitlines()
        return bool(lines) and lines[0].startswith("{") and '"input_length"' in lines[0]

    def read(self, path: Path) -> Records:
        """See `Reader.read`."""
        records, blocks, times_s = Records(), BlockColumn("hash_ids", path), list[float]()
        for row, record in json_lines(path):
            time_ms = timestamp(required(record, "timestamp", path, row), "timestamp", path, row)
            length = required(record, "input_length", path, row)
            prompt = token_count(length, "input_length", path, row)
            length = required(record, "output_length", path, row)
            times_s.append(time_ms / 1e3)
            records.prompt_tokens.append(prompt)
            records.output_tokens.append(token_count(length, "output_length", path, row))
            records.rows.append(row)
            hashes = blocks.hashes(record, row)
            if hashes is not None:
                _check_count(len(hashes), prompt, path, row)
                blocks.add(hashes, BLOCK_TOKENS, prompt)
        records.times_s = times_s
        records.segments = blocks.table()
        return records


def _check_count(num_hashes: int, prompt_tokens: int, path: Path, row: int) -> None:
    due = -(-prompt_tokens // BLOCK_TOKENS)
    if num_hashes != due:
        raise InputError(
            f"{num_hashes} hash_ids for a prompt of {prompt_tokens} tokens",
            where=place(path, row),
            remedy=f"one for each {BLOCK_TOKENS}-token block, the last perhaps partial: {due}",
        )
