"""Results of `vllm bench serve --save-result --save-detailed` (vllm/benchmarks/serve.py).

One JSON object; per request input_lens, output_lens, errors and, since 2025, start_times (a
monotonic clock, seconds). Requests that failed are left out and counted in a note. Without
start_times every request arrives at 0 unless the workload sets `arrivals`.
"""

from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.workload.readers.base import Records
from twin.workload.readers.bounded import json_document
from twin.workload.readers.fields import shown, timestamp, token_count
from twin.workload.trace import Finish


class VllmBenchJson:
    """See the module."""

    description = "result of vllm bench serve with --save-result --save-detailed"
    finish: Finish = "length"

    def recognises(self, head: str) -> bool:
        """Whether the file starts as a benchmark result, detailed or not."""
        return head.lstrip().startswith("{") and (
            '"input_lens"' in head or ('"request_throughput"' in head and '"completed"' in head)
        )

    def read(self, path: Path) -> Records:
        """See `Reader.read`."""
        document = json_document(path)
        if not isinstance(document, dict):
            raise InputError("is not a JSON object", where=str(path), remedy="one result a file")
        prompts = _column(document, "input_lens", None, path)
        outputs = _column(document, "output_lens", len(prompts), path)
        starts = _column(document, "start_times", len(prompts), path, optional=True)
        errors = _column(document, "errors", len(prompts), path, optional=True)
        records, times_s, failed = Records(in_order=False), list[float](), 0
        for i, (prompt, output) in enumerate(zip(prompts, outputs, strict=True)):
            if errors and errors[i]:
                failed += 1
                continue
            records.prompt_tokens.append(token_count(prompt, "input_lens", path, i + 1))
            records.output_tokens.append(token_count(output, "output_lens", path, i + 1))
            times_s.append(timestamp(starts[i], "start_times", path, i + 1) if starts else 0.0)
            records.rows.append(i + 1)
        records.times_s = times_s
        if failed:
            records.notes.append(
                f"requests that failed in the recorded run, left out: {failed} of {len(prompts)}"
            )
        records.timed = bool(starts)
        return records


def _column(
    document: dict[str, Any], key: str, length: int | None, path: Path, *, optional: bool = False
) -> list[Any]:
    values = document.get(key)
    if values is None and optional:
        return []
    if values is None:
        raise InputError(
            f"{key} is missing", where=str(path), remedy="run vllm bench with --save-detailed"
        )
    if not isinstance(values, list):
        raise InputError(f"{key} is {shown(values)}, not a list", where=str(path))
    if length is not None and len(values) != length:
        raise InputError(
            f"{key} has {len(values)} entries and input_lens {length}",
            where=str(path),
            remedy="the result is damaged; run the benchmark again",
        )
    return values
