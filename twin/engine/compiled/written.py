"""What compiled replicas logged, as arrays: every step, every gap between tokens."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from twin.engine.compiled import entry, layout

if TYPE_CHECKING:
    from twin.engine.compiled.fleet import CompiledFleet

_COLUMNS = {
    "scheduled_s": "scheduled_s", "start_s": "start_s", "end_s": "end_s", "replica": "replica",
    "prefill_tokens": "prefill", "decode_tokens": "decode", "running": "running",
    "waiting": "waiting", "used_blocks": "used_blocks", "preempted": "preempted",
    "bound": "bound",
}  # fmt: skip


class Log:
    """The log of a fleet, written out when it is asked for.

    Args:
        fleet: which.
        cores: numbers of the engine cores by row.

    Attributes:
        kept: steps that it holds.
        taken: steps there were.
    """

    def __init__(self, fleet: "CompiledFleet", cores: Any) -> None:
        self._fleet, self._cores = fleet, cores
        steps = fleet.state.run["steps"][: fleet.state.counter[layout.RUNS]]
        self._longest = int(steps.max(initial=1))
        self.kept = int(fleet.state.counter[layout.STEPS] + steps.sum())
        self.taken = int(fleet.state.replica["steps"][: cores.size].sum())

    def columns(self) -> dict[str, Any]:
        """Return the steps, in no particular order, by column of `StepTable`."""
        out = np.zeros(self.kept, layout.STEP)
        entry.step_rows(self._fleet.address(), out, np.zeros((self._longest, 5)))
        columns = {ours: out[theirs] for ours, theirs in _COLUMNS.items()}
        columns["replica"] = self._cores[columns["replica"]]
        return columns

    def gaps(self, row: int) -> Any:
        """Return the gaps between tokens of a replica, in order of delivery."""
        return self._gaps[row]

    @cached_property
    def _gaps(self) -> list[Any]:
        counts = np.zeros(self._cores.size, dtype=np.int64)
        entry.gap_counts(self._fleet.address(), counts)
        ends = np.cumsum(counts)
        out = np.zeros(int(ends[-1]) if ends.size else 0)
        room = np.zeros((self._longest, 5))
        entry.write_gaps(self._fleet.address(), ends - counts, out, room)
        return np.split(out, ends[:-1])
