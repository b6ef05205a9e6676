"""A recorded vLLM run: what was sent, what happened, with which flags, on measured layers.

`trace.jsonl` (requests), `requests.jsonl` (monotonic seconds at which the engine core queued each
request and delivered its first and last token), `meta.json` (flags, and the block count where the
engine logged it) and `layer_profile/`.
"""

import json
import math
from dataclasses import dataclass
from itertools import pairwise
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
_BELONG = "trace.jsonl and requests.jsonl must belong together"


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
        output_tokens: answer lengths, shape (n,), in the order of the trace.
        profile: layers measured on the GPU of the run, for its tensor parallelism.
    """

    path: Path
    flags: dict[str, Any]
    kv_cache: dict[str, Any]
    vllm_version: str
    measured: Latencies
    output_tokens: NDArray[np.int64]
    profile: HardwareProfile

    @property
    def logged_blocks(self) -> int | None:
        """KV blocks a rank that the engine logged; None: it did not.

        Raises:
            InputError: what stands there is no count.
        """
        if self.kv_cache.get("num_gpu_blocks") is None:
            return None
        return whole(self.kv_cache, "num_gpu_blocks", self.path / "meta.json", 1)

    def check_sent(self, output_tokens: NDArray[np.int64]) -> None:
        """Refuse a trace of other requests than those recorded.

        Args:
            output_tokens: answer lengths that the trace asks for, shape (n,).

        Raises:
            InputError: their number differs, or the length of one.
        """
        sent, recorded = len(output_tokens), len(self.output_tokens)
        if sent != recorded:
            raise InputError(
                f"{sent} requests sent, {recorded} recorded", where=str(self.path), remedy=_BELONG
            )
        other = np.flatnonzero(output_tokens != self.output_tokens)
        if other.size:
            number = int(other[0])
            raise InputError(
                f"request {number} has {output_tokens[number]} output tokens in the trace, "
                f"{self.output_tokens[number]} recorded",
                where=str(self.path),
                remedy=_BELONG,
            )


def input_files(path: str | Path) -> list[Path]:
    """Return the files of a run's folder that are read."""
    folder = Path(path)
    names = ("meta.json", "requests.jsonl", "trace.jsonl")
    return [*(folder / name for name in names), *(folder / "layer_profile").rglob("*.*")]


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
    for name in ("requests.jsonl", "trace.jsonl"):
        if not (folder / name).is_file():
            raise InputError("no such file", where=str(folder / name), remedy="give a whole run")
    measured, output_tokens = _measured(folder / "requests.jsonl")
    flags = _section(meta, "engine_kwargs", meta_file, required=True)
    return RunFolder(
        path=folder,
        flags=flags,
        kv_cache=_section(meta, "kv_cache", meta_file, required=False),
        vllm_version=str(meta.get("vllm_version", "")),
        measured=measured,
        output_tokens=output_tokens,
        profile=read_layer_profile(
            folder / "layer_profile", whole(flags, "tensor_parallel_size", meta_file, 1)
        ),
    )


def whole(section: dict[str, Any], key: str, where: Path | str, default: int | None = None) -> int:
    """Return a positive whole number, or the default, if there is one, where nothing is said."""
    value = section.get(key)
    if value is None and default is not None:
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


def _measured(path: Path) -> tuple[Latencies, NDArray[np.int64]]:
    columns: dict[str, list[float]] = {name: [] for name in _TIMES}
    tokens: list[int] = []
    rows: dict[int, int] = {}
    for row, record in json_lines(path):
        where = place(path, row)
        times = [_number(record, name, where) for name in _TIMES]
        _check_in_order(times, where)
        for name, time in zip(_TIMES, times, strict=True):
            columns[name].append(time)
        tokens.append(whole(record, "output_toks", where))
        number = _sequence_number(record, len(rows))
        if number in rows:
            raise InputError(
                f"request {number} stands in row {rows[number]} already",
                where=where,
                remedy="give each request once",
            )
        rows[number] = row
    if not tokens:
        raise InputError("holds no request", where=str(path))
    beyond = max(rows)
    if beyond >= len(rows):
        raise InputError(
            f"request {beyond} is none of the {len(rows)} recorded, which count from 0",
            where=place(path, rows[beyond]),
            remedy=_BELONG,
        )
    order = np.argsort(np.array(list(rows)), kind="stable")
    queued, first, last = (np.array(columns[name])[order] for name in _TIMES)
    counts = np.array(tokens, dtype=np.int64)[order]
    return latencies(queued, first, last, counts), counts


def _check_in_order(times: list[float], where: str) -> None:
    """A request is queued, then gets its first token, then its last."""
    for at, (before, after) in enumerate(pairwise(times)):
        if after < before:
            raise InputError(
                f"{_TIMES[at + 1]} {after} is before {_TIMES[at]} {before}",
                where=where,
                remedy="give the engine's own times",
            )


def _number(record: dict[str, Any], key: str, where: str) -> float:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InputError(f"{key} is {value!r}", where=where, remedy="give a number")
    return float(value)


def _sequence_number(record: dict[str, Any], row: int) -> int:
    """The request's number in the trace: the digits its id ends in, else its row."""
    tail = str(record.get("request_id", "")).rpartition("-")[2]
    return int(tail) if tail.isdigit() else row
