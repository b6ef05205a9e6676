"""Trace formats: `READERS` holds one reader a format, `read_trace` picks one by content."""

from collections.abc import Mapping
from pathlib import Path

from twin.errors import InputError
from twin.naming import lookup
from twin.workload.readers.azure_llm_csv import AzureLlmCsv
from twin.workload.readers.base import Reader, Records
from twin.workload.readers.bounded import head
from twin.workload.readers.mooncake_jsonl import MooncakeJsonl
from twin.workload.readers.sharegpt_json import SharegptJson
from twin.workload.readers.vllm_bench_json import VllmBenchJson
from twin.workload.readers.vllm_run_jsonl import VllmRunJsonl
from twin.workload.trace import Trace

READERS: Mapping[str, Reader] = {
    "azure_llm_csv": AzureLlmCsv(),
    "mooncake_jsonl": MooncakeJsonl(),
    "sharegpt_json": SharegptJson(),
    "vllm_bench_json": VllmBenchJson(),
    "vllm_run_jsonl": VllmRunJsonl(),
}

__all__ = ["READERS", "Reader", "Records", "read_trace", "recognise"]


def recognise(path: Path) -> str:
    """Return the format of a file, judged by how it starts.

    Raises:
        InputError: the file cannot be read, or no reader knows it.
    """
    start = head(path)
    for name, reader in READERS.items():
        if reader.recognises(start):
            return name
    raise InputError(
        "the format is not known",
        where=str(path),
        remedy="servetwin reads " + "; ".join(f"{n} ({r.description})" for n, r in READERS.items()),
    )


def read_trace(path: str | Path, format: str | None = None, *, sort: bool = False) -> Trace:
    """Read a trace file, plain or gzip.

    Args:
        path: the file.
        format: a name in `READERS`; None: judged by content.
        sort: order the requests by time instead of refusing a file whose times run back.

    Returns:
        The requests in order of arrival, times counted from the first.

    Raises:
        InputError: one line that names file, row and remedy.
    """
    path = Path(path)
    name = recognise(path) if format is None else format
    reader = lookup(READERS, name, "trace format", where=str(path))
    return reader.read(path).to_trace(path, name, reader.finish, sort=sort)
