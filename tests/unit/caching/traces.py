"""Small Mooncake traces."""

import json
from pathlib import Path

Row = tuple[int, int, list[int]]
"""(timestamp in ms, prompt tokens, hash ids)."""

SESSIONS: list[Row] = [
    (0, 1024, [1, 2]),
    (5_000, 1024, [1, 3]),
    (10_000, 1536, [1, 2, 4]),
    (50_000, 1536, [1, 3, 5]),
    (51_000, 2048, [1, 2, 4, 6]),
    (52_000, 512, [1]),
]


def written(folder: Path, rows: list[Row], name: str = "trace.jsonl") -> str:
    """Write a trace; return its path."""
    path = folder / name
    lines = (
        {"timestamp": time_ms, "input_length": tokens, "output_length": 1, "hash_ids": ids}
        for time_ms, tokens, ids in rows
    )
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return str(path)
