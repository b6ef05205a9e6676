"""What compiled replicas logged, as arrays: every step, every gap between tokens."""

from typing import TYPE_CHECKING, Any

import numpy as np

from twin.engine.compiled import expand, layout

if TYPE_CHECKING:
    from twin.engine.compiled.fleet import CompiledFleet

_COLUMNS = {
    "scheduled_s": "scheduled_s", "start_s": "start_s", "end_s": "end_s", "replica": "replica",
    "prefill_tokens": "prefill", "decode_tokens": "decode", "running": "running",
    "waiting": "waiting", "used_blocks": "used_blocks", "preempted": "preempted",
    "bound": "bound",
}  # fmt: skip


def step_columns(fleet: "CompiledFleet", cores: Any) -> dict[str, Any]:
    """Return every step of a fleet, in no particular order, by column of `StepTable`.

    `cores`: numbers of the engine cores by row.
    """
    longest, of_runs = _runs(fleet)
    out = np.zeros(int(fleet.state.counter[layout.STEPS]) + of_runs, layout.STEP)
    expand.step_rows(fleet.table(), out, np.zeros((longest, 5)))
    columns = {ours: out[theirs] for ours, theirs in _COLUMNS.items()}
    columns["replica"] = cores[columns["replica"]]
    return columns


def gaps_by_row(fleet: "CompiledFleet") -> list[Any]:
    """Return the gaps between tokens of each replica, in order of delivery."""
    counts = np.zeros(len(fleet.members), dtype=np.int64)
    expand.gap_counts(fleet.table(), counts)
    ends = np.cumsum(counts)
    out = np.zeros(int(ends[-1]) if ends.size else 0)
    longest, _ = _runs(fleet)
    expand.write_gaps(fleet.table(), ends - counts, out, np.zeros((longest, 5)))
    return np.split(out, ends[:-1])


def _runs(fleet: "CompiledFleet") -> tuple[int, int]:
    """Return the steps of the longest run of decode steps, and those of all runs."""
    steps = fleet.state.run["steps"][: fleet.state.counter[layout.RUNS]]
    return int(steps.max(initial=1)), int(steps.sum())
