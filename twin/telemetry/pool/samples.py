"""`PoolSamples`: the block pool of one engine core, and all prefix counters, at chosen instants."""

from collections.abc import Sequence

import numpy as np

from twin.scheduling.base import Scheduler
from twin.telemetry.pool.state import Ints, PoolState, pool_state

KINDS = ("shared", "owned", "cached", "free")
"""What a block may be: held by several requests, by one, by none with or without content."""


class PoolSamples:
    """Reads schedulers at instants; a state watcher of `twin.engine.run.simulate`.

    Args:
        instants_s: when, increasing; a state at an instant is the one after whatever happens then.
        core: the engine core whose blocks are read.
        most_rows: into so many rows of consecutive blocks they are counted.

    Attributes:
        core: see above.
        first_block: of each row, and the number of blocks at the end; empty: the engine only
            counts its blocks.
    """

    def __init__(self, instants_s: Sequence[float], core: int, most_rows: int) -> None:
        self.core = core
        self.first_block: list[int] = []
        self._states: list[tuple[int, int, int]] = []
        self._cells: list[Ints] = []
        self._before = 0
        self._most_rows = most_rows
        self._instants_s = list(instants_s)
        self._due_s = self._instants_s[0] if self._instants_s else float("inf")
        self._reached = 0
        self._schedulers: dict[int, Scheduler] = {}
        self._queries: list[int] = []
        self._hits: list[int] = []

    def __call__(self, core: int, now_s: float, scheduler: Scheduler) -> None:
        """Take note of what has stood until `now_s`."""
        self._schedulers.setdefault(core, scheduler)
        if now_s > self._due_s:
            self._take(now_s)

    def finish(self) -> None:
        """The run is over: what stands now stands for the instants that are left."""
        self._take(float("inf"))

    @property
    def states(self) -> Ints:
        """(Owned, cached, free) blocks at each instant, shape (instants, 3)."""
        blocks = sum(self._states[0]) if self._states else 0
        return np.array([(0, 0, blocks)] * self._before + self._states, dtype=np.int64)

    @property
    def cells(self) -> Ints | None:
        """Blocks of each of `KINDS` by instant and row, shape (instants, rows, 4).

        None: the engine only counts its blocks.
        """
        if not self._cells:
            return None
        empty = np.zeros_like(self._cells[0])
        empty[:, KINDS.index("free")] = np.diff(self.first_block)
        return np.stack([empty] * self._before + self._cells)

    @property
    def queries_tokens(self) -> Ints:
        """Tokens that first admissions looked up so far, by instant; all cores."""
        return np.array(self._queries, dtype=np.int64)

    @property
    def hits_tokens(self) -> Ints:
        """Those of them that were found."""
        return np.array(self._hits, dtype=np.int64)

    def _take(self, now_s: float) -> None:
        at, instants_s = self._reached, self._instants_s
        while at < len(instants_s) and instants_s[at] < now_s:
            at += 1
        times = at - self._reached
        self._reached = at
        self._due_s = instants_s[at] if at < len(instants_s) else float("inf")
        if times:
            self._keep(times)

    def _keep(self, times: int) -> None:
        """Write the present down, once for each instant that it stands for."""
        counters = [scheduler.prefix for scheduler in self._schedulers.values()]
        self._queries += [sum(c.queries for c in counters)] * times
        self._hits += [sum(c.hits for c in counters)] * times
        scheduler = self._schedulers.get(self.core)
        if scheduler is None:  # it has not begun: all its blocks are free
            self._before += times
            return
        state = pool_state(scheduler)
        self._states += [(state.owned_blocks, state.cached_blocks, state.free_blocks)] * times
        if state.holders is not None:
            self._cells += [self._counted(state)] * times

    def _counted(self, state: PoolState) -> Ints:
        """Return blocks of each kind by row, shape (rows, 4)."""
        holders, cached = state.holders, state.cached
        if holders is None or cached is None:
            raise ValueError("blocks are only counted")
        if not self.first_block:
            edges = np.linspace(0, holders.size, min(self._most_rows, holders.size) + 1)
            self.first_block = np.round(edges).astype(np.int64).tolist()
        kinds = np.stack(
            (holders > 1, holders == 1, cached, (holders == 0) & ~cached), axis=1
        ).astype(np.int64)
        return np.add.reduceat(kinds, self.first_block[:-1], axis=0)
