"""A recorded vLLM run: what was sent, what happened, with which flags, on measured layers.

`trace.jsonl` (requests), `requests.jsonl` (monotonic seconds at which the engine core queued each
request and delivered its first and last token), `meta.json` (flags, and the block count where the
engine logged it) and `layer_profile/`.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.sources.layer_profile import read_layer_profile
from hwmodels.profile import HardwareProfile
from twin.errors import InputError
from twin.load.documents import read_text
from twin.workload.readers.bounded import json_lines
from twin.workload.readers.fields import place

Floats = NDArray[np.float64]

_TIMES = ("queued_ts", "first_token_ts", "last_token_ts")


@dataclass(frozen=True, slots=True)
class Latencies:
    """Seconds by request, shape (n,) each, in the order of the trace.

    Attributes:
        ttft: from queueing in the engine core to the first token.
        tpot: mean gap between tokens; 0 for answers of one token.
        e2e: from queueing to the last token.
    """

    ttft: Floats
    tpot: Floats
    e2e: Floats


def latencies(queued: Floats, first: Floats, last: Floats, tokens: NDArray[np.int64]) -> Latencies:
    """Return the latencies of requests from their instants and answer lengths."""
    gaps = np.maximum(tokens - 1, 1)
    return Latencies(ttft=first - queued, tpot=(last - first) / gaps, e2e=last - queued)


@dataclass(frozen=True, slots=True)
class RunFolder:
    """One recorded run.

    Attributes:
        path: the folder.
        flags: `engine_kwargs` of its meta file.
        kv_cache: its `kv_cache` section; empty where the run did not log it.
        vllm_version: as logged.
        measured: what the requests took.
        profile: layers measured on the GPU of the run, for its tensor parallelism.
    """

    path: Path
    flags: dict[str, Any]
    kv_cache: dict[str, Any]
    vllm_version: str
    measured: Latencies
    profile: HardwareProfile

    @property
    def logged_blocks(self) -> int | None:
        """KV blocks a rank that the engine logged; None: it did not."""
        blocks = self.kv_cache.get("num_gpu_blocks")
        return blocks if isinstance(blocks, int) and blocks > 0 else None


def read_run(path: str | Path) -> RunFolder:
    """Return the run in a folder.

    Raises:
        InputError: a file is missing or damaged.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise InputError("no such folder", where=str(folder), remedy="give a recorded vLLM run")
    meta_file = folder / "meta.json"
    meta = _meta(meta_file)
    flags = _section(meta, "engine_kwargs", meta_file, required=True)
    return RunFolder(
        path=folder,
        flags=flags,
        kv_cache=_section(meta, "kv_cache", meta_file, required=False),
        vllm_version=str(meta.get("vllm_version", "")),
        measured=_measured(folder / "requests.jsonl"),
        profile=read_layer_profile(
            folder / "layer_profile", whole(flags, "tensor_parallel_size", meta_file, 1)
        ),
    )


def whole(section: dict[str, Any], key: str, where: Path, default: int) -> int:
    """Return a positive whole number of a meta file, or the default where it says nothing."""
    value = section.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{key} is {value!r}", where=str(where), remedy="give a number above 0")
    return value


def _meta(path: Path) -> dict[str, Any]:
    try:
        meta = json.loads(read_text(path, "meta file"))
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", where=str(path)) from None
    if not isinstance(meta, dict):
        raise InputError("is not an object", where=str(path), remedy="give the run's own file")
    return meta


def _section(meta: dict[str, Any], key: str, where: Path, *, required: bool) -> dict[str, Any]:
    section = meta.get(key)
    if isinstance(section, dict):
        return section
    if required:
        raise InputError(f"has no {key}", where=str(where), remedy="give the run's own file")
    return {}


def _measured(path: Path) -> Latencies:
    columns: dict[str, list[float]] = {name: [] for name in _TIMES}
    tokens: list[int] = []
    numbers: list[int] = []
    for row, record in json_lines(path):
        for name in _TIMES:
            columns[name].append(_number(record, name, place(path, row)))
        tokens.append(round(_number(record, "output_toks", place(path, row))))
        numbers.append(_sequence_number(record, len(numbers)))
    if not tokens:
        raise InputError("holds no request", where=str(path))
    order = np.argsort(np.array(numbers), kind="stable")
    queued, first, last = (np.array(columns[name])[order] for name in _TIMES)
    return latencies(queued, first, last, np.array(tokens, dtype=np.int64)[order])


def _number(record: dict[str, Any], key: str, where: str) -> float:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"{key} is {value!r}", where=where, remedy="give a number")
    return float(value)


def _sequence_number(record: dict[str, Any], row: int) -> int:
    """The request's number in the trace: the digits its id ends in, else its row."""
    tail = str(record.get("request_id", "")).rpartition("-")[2]
    return int(tail) if tail.isdigit() else row
