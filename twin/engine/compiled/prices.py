"""`PriceBook`: asks a `StepTimer` what compiled replicas have met for the first time."""

from typing import Any

import numpy as np

from twin.engine.compiled import layout, pricing
from twin.engine.compiled.layout import NEED, NEED_A, NEED_B, NEED_C, NEED_D, Prices, State
from twin.llm.op_sum import OpSum
from twin.llm.prefill_grid import HISTORIES, QUERIES
from twin.llm.step_time import StepTimer
from twin.step import BatchShape

_ROWS = 256


class PriceBook:
    """Prices of one kind of replica, in the arrays that `Prices` names.

    Args:
        timer: tells them.
        most_running, most_tokens: requests and tokens of the largest step.

    Attributes:
        prices: the arrays.
        moved: some of them were replaced; whoever has seen to that sets it back.
    """

    def __init__(self, timer: StepTimer, most_running: int, most_tokens: int) -> None:
        self._timer, self.moved = timer, False
        self._used = {"sums": 0, "lines": 0, "pieces": 0, "cells": 0}
        tokens = max(most_tokens, most_running, *timer.mixed_sizes, 1)

        def index(*shape: int) -> Any:
            return np.full(shape, -1, dtype=np.int32)

        self.prices = Prices(
            sums=np.zeros(_ROWS, layout.SUM),
            body_of=index(2 * tokens + 2 * 64),
            head_of=index(most_running + 1),
            lines=np.zeros(_ROWS, layout.LINE),
            line_of=index(most_running + 1, pricing.KNOTS),
            pieces=np.zeros(_ROWS, layout.PIECE),
            piece_of=index(most_running + 1, pricing.KNOTS),
            cells=np.zeros(_ROWS, layout.CELL),
            cell_of=index(len(QUERIES) + 1, len(HISTORIES) + 1, 2),
            queries=np.array(QUERIES, dtype=np.int64),
            histories=np.array(HISTORIES, dtype=np.int64),
            captured=np.array(timer.mixed_sizes, dtype=np.int64),
            floors=np.full((2, pricing.MOST_KERNELS), -1.0),
        )

    def fill(self, state: State) -> None:
        """Tell the price that a replica found missing."""
        counter = state.counter
        kind, a, b, c = (int(counter[place]) for place in (NEED, NEED_A, NEED_B, NEED_C))
        timer, prices = self._timer, self.prices
        if kind == pricing.WHOLE:
            self._tell_whole(state, a, b)
            return
        if kind == pricing.BODY:
            prices.body_of[a] = self._add("sums", _sum(timer.body(a)))
        elif kind == pricing.HEAD:
            prices.head_of[a] = self._add("sums", _sum(timer.head(a)))
        elif kind == pricing.LINE:
            line = timer.line(a, c)
            row = (line.base_s, line.slope_s, line.bound, line.source, line.kernels)
            prices.line_of[a, b] = self._add("lines", row)
        elif kind == pricing.PIECE:
            prices.piece_of[a, b] = self._add("pieces", _piece(timer, a, c))
        elif kind == pricing.CELL:
            prices.cell_of[a, b, c] = self._add("cells", timer.prefill_grid.cell((a, b, bool(c))))
        else:
            prices.floors[a, b] = timer.floor_s(b, graph=bool(a))
        counter[NEED] = 0

    def _add(self, table: str, row: tuple[Any, ...]) -> int:
        place = self._used[table]
        rows = getattr(self.prices, table)
        if place == rows.size:
            rows = np.concatenate([rows, np.zeros_like(rows)])
            self.prices = self.prices._replace(**{table: rows})
            self.moved = True
        rows[place] = row
        self._used[table] = place + 1
        return place

    def _tell_whole(self, state: State, replica: int, slot: int) -> None:
        time = self._timer.time(_shape(state, replica, slot))
        state.split[0] = time.seconds
        state.split[1:5], state.split[5:9] = time.by_bound, time.by_source
        state.counter[NEED_D] = time.bound


def _sum(total: OpSum) -> tuple[Any, ...]:
    return total.seconds, total.by_bound, total.by_source, total.kernels


def _piece(timer: StepTimer, seqs: int, kv_tokens: int) -> tuple[Any, ...]:
    piece = timer.decode_piece(seqs, kv_tokens)
    return (
        piece.base_s, piece.slope_s, piece.attention_base_s, piece.launch_base_s,
        piece.launch_slope_s, piece.by_bound, piece.by_source, piece.last_kv, piece.bound,
        piece.source,
    )  # fmt: skip


def _shape(state: State, replica: int, slot: int) -> BatchShape:
    """Return what a plan runs."""
    flight = state.flight[replica, slot]
    entries = state.plan[replica, slot, : flight["count"]]
    computed = state.request["computed"][entries["row"]]
    ones = entries["tokens"] == 1
    decodes = computed[ones]
    chunks = zip(entries["tokens"][~ones].tolist(), computed[~ones].tolist(), strict=True)
    return BatchShape(
        tuple(chunks),
        int(ones.sum()),
        int(decodes.sum()),
        int(decodes.max(initial=0)),
        int(flight["samples"]),
        int(decodes.min()) if decodes.size else 0,
    )
