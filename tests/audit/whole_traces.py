"""Which production traces are replayed whole, and on what."""

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SCENARIO = "chat-h100"


@dataclass(frozen=True)
class TraceRun:
    """A trace on the `chat-h100` example with some keys changed."""

    title: str
    file: str
    changes: dict[str, Any] = field(default_factory=dict)

    def overrides(self, data: Path) -> dict[str, Any]:
        """Return the scenario's overrides, given the folder of measured data."""
        return {"workload.path": str(data / "traces" / self.file), **self.changes}

    @property
    def longest_context(self) -> int:
        """Tokens of the longest context the server takes: what the network was trained for."""
        return 131_072


_LONG = {"policy.max_model_len": 131_072}
TRACE_RUNS = {
    "azure-conv-4": TraceRun(
        "Azure 2023 conversation, 4 replicas", "azure_2023_conv.csv", {"cluster.replicas": 4}
    ),
    "azure-conv-quarter-1": TraceRun(
        "Azure 2023 conversation at a quarter of its rate, 1 replica",
        "azure_2023_conv.csv",
        {"workload.rate_scale": 0.25},
    ),
    "azure-code-4": TraceRun(
        "Azure 2023 code, 4 replicas", "azure_2023_code.csv", {"cluster.replicas": 4}
    ),
    "mooncake-conv-8": TraceRun(
        "Mooncake conversation, 8 replicas",
        "mooncake_conversation.jsonl",
        {"cluster.replicas": 8, **_LONG},
    ),
    "mooncake-conv-1": TraceRun(
        "Mooncake conversation, 1 replica (overloaded)", "mooncake_conversation.jsonl", _LONG
    ),
    "mooncake-synth-8": TraceRun(
        "Mooncake synthetic, 8 replicas",
        "mooncake_synthetic.jsonl",
        {"cluster.replicas": 8, **_LONG},
    ),
    "mooncake-synth-1": TraceRun(
        "Mooncake synthetic, 1 replica (overloaded)", "mooncake_synthetic.jsonl", _LONG
    ),
}


def lengths(path: Path) -> list[tuple[int, int]]:
    """Return (prompt, answer) tokens of every row, read without the product's readers."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        return [(int(row["ContextTokens"]), int(row["GeneratedTokens"])) for row in rows]
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [(record["input_length"], record["output_length"]) for record in records]
