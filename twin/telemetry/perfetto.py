"""Steps as a Chrome trace-event file, to look at in https://ui.perfetto.dev.

Format: Google's "Trace Event Format" (JSON object form); times are microseconds.
"""

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from twin.engine.result import BOUNDS, Ints, SimulationResult
from twin.files import write_bytes

MAX_EVENTS = 200_000
"""Most events of a trace unless told otherwise: the viewer stays fluent, the file a few MB."""

# A step is a slice and two counter samples, and an instant where something was preempted.
_EVENTS_PER_STEP = 3


def trace_events(
    result: SimulationResult, *, max_events: int = MAX_EVENTS, from_s: float = 0.0
) -> tuple[list[dict[str, Any]], str]:
    """Return (events, note): one track a replica with a slice a step, and counters.

    Where steps overlap (pipeline stages) they lie on several tracks, each on the first free one.

    Args:
        result: what the run gave.
        max_events: how many events at the most; steps beyond are left out.
        from_s: steps scheduled earlier are left out.

    `note` says which steps were left out; empty when none was. It also stands in the trace, as
    the label of its first process.
    """
    steps = result.steps
    first = int(np.searchsorted(steps.scheduled_s, from_s, side="left"))
    lanes = _lanes(result)
    tracks = [int(lanes[steps.replica == r].max(initial=0)) + 1 for r in range(result.replicas)]
    heads = 2 * result.replicas + sum(tracks)
    last = _last_step(result, first, max_events - heads)
    note = ""
    if last - first < len(steps):
        upto = f"until {steps.end_s[last - 1]:.6g} s" if last > first else "none fits"
        note = (
            f"{last - first:,} of {len(steps):,} steps, from {from_s:.6g} s {upto}: "
            f"limited to {max_events:,} events"
        )
    events = [event for replica, n in enumerate(tracks) for event in _heads(replica, n, note)]
    events += _step_events(result, lanes, first, last)
    return events, note


def trace_json(
    result: SimulationResult, *, max_events: int = MAX_EVENTS, from_s: float = 0.0
) -> str:
    """Return the trace as JSON text; see `trace_events`."""
    events, note = trace_events(result, max_events=max_events, from_s=from_s)
    other = {"producer": "servetwin", "note": note or "every step of the run"}
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in events)
    head = f'{{"displayTimeUnit":"ms","otherData":{json.dumps(other)}'
    return f'{head},\n"traceEvents":[\n{lines}\n]}}\n'


def write_trace(
    result: SimulationResult,
    path: str | Path,
    *,
    max_events: int = MAX_EVENTS,
    from_s: float = 0.0,
) -> Path:
    """Write the trace to `path`, whole or not at all; gzipped when the name ends in `.gz`.

    Raises:
        InputError: the folder does not exist or cannot be written.
    """
    data = trace_json(result, max_events=max_events, from_s=from_s).encode()
    if str(path).endswith(".gz"):
        # No name and no time in the header: equal runs give equal bytes.
        buffer = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as packed:
            packed.write(data)
        data = buffer.getvalue()
    write_bytes(path, data)
    return Path(path)


def _last_step(result: SimulationResult, first: int, room: int) -> int:
    """One past the last step whose events all fit into `room`."""
    instants = result.steps.preempted[first:] > 0
    needed = np.cumsum(_EVENTS_PER_STEP + instants)
    return first + int(np.searchsorted(needed, room, side="right"))


def _lanes(result: SimulationResult) -> Ints:
    """Return the track of each step within its replica, from 0: slices of one may not overlap."""
    steps = result.steps
    lanes = np.zeros(len(steps), dtype=np.int64)
    for replica in range(result.replicas):
        rows = np.flatnonzero(steps.replica == replica)
        begin, end = steps.start_s[rows], steps.end_s[rows]
        if not (begin[1:] < end[:-1]).any():
            continue
        free_s: list[float] = []
        for row, start_s, end_s in zip(rows, begin.tolist(), end.tolist(), strict=True):
            lane = next((i for i, at_s in enumerate(free_s) if at_s <= start_s), len(free_s))
            free_s[lane : lane + 1] = [end_s]
            lanes[row] = lane
    return lanes


def _heads(replica: int, tracks: int, note: str) -> Iterator[dict[str, Any]]:
    pid = replica + 1
    yield _meta("process_name", pid, {"name": f"replica {replica}"})
    for lane in range(tracks):
        name = f"GPU steps, in flight {lane + 1}" if tracks > 1 else "GPU steps"
        yield _meta("thread_name", pid, {"name": name}, lane + 1)
    if note and replica == 0:
        yield _meta("process_labels", pid, {"labels": note})


def _meta(name: str, pid: int, args: dict[str, Any], tid: int = 1) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": pid, "tid": tid, "args": args}


def _step_events(
    result: SimulationResult, lanes: Ints, first: int, last: int
) -> Iterator[dict[str, Any]]:
    steps = result.steps
    per_block = [100.0 / usable if usable else 0.0 for usable in result.usable_of_core.tolist()]
    names = type(steps).__dataclass_fields__
    columns = zip(*(getattr(steps, name)[first:last].tolist() for name in names), strict=True)
    for step, values in enumerate(columns, start=first):
        row = dict(zip(names, values, strict=True))
        pid = row["replica"] + 1
        at_us = _microseconds(row["scheduled_s"])
        yield {
            "ph": "X",
            "name": _step_name(row),
            "cat": BOUNDS[row["bound"]],
            "pid": pid,
            "tid": int(lanes[step]) + 1,
            "ts": _microseconds(row["start_s"]),
            "dur": _microseconds(row["end_s"] - row["start_s"]),
            "args": {
                "step": step,
                "prefill_tokens": row["prefill_tokens"],
                "decode_tokens": row["decode_tokens"],
                "running": row["running"],
                "waiting": row["waiting"],
                "bound": BOUNDS[row["bound"]],
            },
        }
        usage = round(row["used_blocks"] * per_block[row["replica"]], 3)
        yield _counter("KV cache (%)", pid, at_us, {"used": usage})
        queue = {"running": row["running"], "waiting": row["waiting"]}
        yield _counter("requests", pid, at_us, queue)
        if row["preempted"]:
            yield {
                "ph": "i",
                "name": "preemption",
                "s": "p",
                "pid": pid,
                "tid": 1,
                "ts": at_us,
                "args": {"requests": row["preempted"]},
            }


def _step_name(row: dict[str, Any]) -> str:
    kinds = [kind for kind in ("prefill", "decode") if row[f"{kind}_tokens"]]
    return " + ".join(kinds) or "empty"


def _counter(name: str, pid: int, at_us: float, args: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "C", "name": name, "pid": pid, "ts": at_us, "args": args}


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)
