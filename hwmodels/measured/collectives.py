"""Collectives from fitted lines and tables: NCCL's, and the engine's own all-reduce."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hwmodels.collectives import collective_cost
from hwmodels.measured.tables import variants
from hwmodels.ops import Bound, Collective, OpCost, Source
from hwmodels.profile import Table
from hwmodels.spec import GpuSpec

Lines = Sequence[Sequence[float]]
"""(microseconds, GB/s) of each protocol: the first plus bytes over the second."""

# Lines fit this one worst (32 % at P90 with eight ranks): its table is interpolated instead.
_TABLE_KINDS = ("all_to_all",)


class MeasuredCollectives:
    """Prices collectives within a node.

    NCCL is the minimum of its protocols' lines. The engine's all-reduce is its own table, as the
    engine ran it at each size, NCCL included where it hands over. The jump there is real, so
    nothing is interpolated across `limit_bytes`.

    Args:
        lines: fitted lines by `kind/ranks`.
        limit_bytes: size from which the engine's own kernel no longer serves (0: it has no limit).
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        lines: Mapping[str, Lines],
        limit_bytes: float,
        gpu: GpuSpec,
    ) -> None:
        self._tables, self._lines, self._limit, self._gpu = tables, lines, limit_bytes, gpu
        self._nccl = variants(tables, "nccl")
        self._curves: dict[tuple[str, int], list[_Curve]] = {}

    def cost(self, op: Collective) -> OpCost:
        """Return the cost of a collective, all repeats; one rank costs nothing."""
        base = collective_cost(op, self._gpu)
        if op.ranks <= 1 or op.num_bytes <= 0:
            return base
        found = self._engine(op) or self._nccl_seconds(op)
        if found is None:
            return base
        return OpCost(found[0] * op.repeat, Bound.LINK, found[1], op.repeat)

    def _engine(self, op: Collective) -> tuple[float, Source] | None:
        if op.kind != "all_reduce" or not op.custom_allowed or op.num_bytes % 16:
            return None
        return self._interpolated("engine_all_reduce", op)

    def _nccl_seconds(self, op: Collective) -> tuple[float, Source] | None:
        if op.kind in _TABLE_KINDS and op.kind in self._nccl:
            return self._interpolated(f"nccl.{op.kind}", op)
        lines = self._lines.get(f"{op.kind}/{op.ranks}")
        if lines is None:
            return None
        seconds = min(us * 1e-6 + op.num_bytes / (rate * 1e9) for us, rate in lines)
        return seconds, Source.PHYSICS

    def _interpolated(self, name: str, op: Collective) -> tuple[float, Source] | None:
        if name not in self._tables:
            return None
        curves = self._curves_of(name, op.ranks)
        for curve in curves:
            if op.num_bytes < curve.end_bytes:
                return curve.at(op.num_bytes)
        return None

    def _curves_of(self, name: str, ranks: int) -> "list[_Curve]":
        curves = self._curves.get((name, ranks))
        if curves is None:
            table = self._tables[name]
            mine = table["ranks"] == ranks
            sizes, seconds = table["bytes"][mine].astype(float), table["seconds"][mine]
            limit = self._limit if name == "engine_all_reduce" and self._limit else math.inf
            below = sizes < limit
            parts = [(below, limit), (~below, math.inf)]
            curves = [_Curve(sizes[p], seconds[p], end) for p, end in parts if p.sum() > 1]
            self._curves[name, ranks] = curves
        return curves


class _Curve:
    """Seconds by bytes: straight in logarithms, constant below, constant bandwidth above."""

    def __init__(
        self, sizes: NDArray[np.float64], seconds: NDArray[np.generic], end_bytes: float
    ) -> None:
        order = np.argsort(sizes)
        self._sizes: list[float] = sizes[order].tolist()
        self._seconds: list[float] = seconds[order].astype(float).tolist()
        self.end_bytes = end_bytes

    def at(self, num_bytes: float) -> tuple[float, Source]:
        sizes, seconds = self._sizes, self._seconds
        if num_bytes <= sizes[0]:
            exact = num_bytes == sizes[0]
            return seconds[0], Source.TABLE if exact else Source.EXTRAPOLATED
        above = bisect_right(sizes, num_bytes)
        if sizes[above - 1] == num_bytes:
            return seconds[above - 1], Source.TABLE
        if above == len(sizes):
            slope = max((seconds[-1] - seconds[-2]) / (sizes[-1] - sizes[-2]), 0.0)
            beyond = seconds[-1] + slope * (num_bytes - sizes[-1])
            return beyond, Source.INTERPOLATED if self.end_bytes < math.inf else Source.EXTRAPOLATED
        share = math.log(num_bytes / sizes[above - 1]) / math.log(sizes[above] / sizes[above - 1])
        low, high = math.log(seconds[above - 1]), math.log(seconds[above])
        return math.exp(low + (high - low) * share), Source.INTERPOLATED
