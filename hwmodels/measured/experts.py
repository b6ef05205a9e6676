"""Grouped expert products from tables: one curve along the tokens for each shape."""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from hwmodels.efficiency import GemmFit
from hwmodels.gemm import quantised_compute
from hwmodels.measured.grid import ResidualGrid
from hwmodels.measured.tables import variants
from hwmodels.moe import expert_cost
from hwmodels.ops import ExpertGemm, OpCost, Source
from hwmodels.profile import Table
from hwmodels.spec import GpuSpec

Shape = tuple[int, int, int, int, int]
"""(hidden, intermediate of a rank, experts, local experts, experts a token)."""

_SHAPE_COLUMNS = ("hidden", "intermediate", "experts", "local", "topk")


class MeasuredExperts:
    """Prices grouped expert products.

    A shape that isn't in the table takes the ratio to physics of the nearest one that is.
    """

    def __init__(
        self, tables: Mapping[str, Table], fit: GemmFit, gpu: GpuSpec, fp8_kernel: str = "fp8"
    ) -> None:
        self._tables, self._fit, self._gpu = tables, fit, gpu
        self._fp8_kernel = fp8_kernel
        self._known = variants(tables, "experts")
        self._shapes: dict[str, dict[Shape, slice]] = {}
        self._nearest: dict[tuple[str, Shape], Shape] = {}
        self._grids: dict[tuple[str, Shape, float], ResidualGrid] = {}

    def cost(self, op: ExpertGemm) -> OpCost:
        """Return the cost of both grouped products, all repeats."""
        base = expert_cost(op, self._fit, self._gpu)
        kernel = self._kernel_for(op)
        if op.tokens <= 0 or kernel is None:
            return base
        shape = (op.hidden, op.intermediate, op.num_experts, op.local_experts, op.experts_per_token)
        held = self._shape_near(kernel, shape)
        ratio, source = self._grid(kernel, held, op).at(op.tokens)
        seconds = base.seconds * math.exp(ratio)
        return OpCost(
            seconds, base.bound, source if held == shape else Source.EXTRAPOLATED, base.kernels
        )

    def _kernel_for(self, op: ExpertGemm) -> str | None:
        if quantised_compute(op.compute_dtype, self._gpu):
            choices = [self._fp8_kernel, "fp8", "fp8_block"] if op.compute_dtype == "fp8" else []
        else:
            choices = [op.weight_dtype]
        return next((name for name in choices if name in self._known), None)

    def _rows(self, kernel: str) -> dict[Shape, slice]:
        found = self._shapes.get(kernel)
        if found is None:
            table = self._tables[f"experts.{kernel}"]
            keys = np.stack([table[name].astype(np.int64) for name in _SHAPE_COLUMNS], axis=1)
            starts = np.flatnonzero(np.any(keys[1:] != keys[:-1], axis=1)) + 1
            edges = [0, *starts.tolist(), len(keys)]
            found = {}
            for start, end in pairwise(edges):
                hidden, inter, experts, local, topk = keys[start].tolist()
                found[hidden, inter, experts, local, topk] = slice(start, end)
            self._shapes[kernel] = found
        return found

    def _shape_near(self, kernel: str, shape: Shape) -> Shape:
        shapes = self._rows(kernel)
        if shape in shapes:
            return shape
        near = self._nearest.get((kernel, shape))
        if near is None:
            near = min(sorted(shapes), key=lambda other: _distance(shape, other))
            self._nearest[kernel, shape] = near
        return near

    def _grid(self, kernel: str, shape: Shape, op: ExpertGemm) -> ResidualGrid:
        gating = op.gated_n / op.intermediate
        grid = self._grids.get((kernel, shape, gating))
        if grid is None:
            table, rows = self._tables[f"experts.{kernel}"], self._rows(kernel)[shape]
            form = replace(
                op, hidden=shape[0], intermediate=shape[1], gated_n=round(shape[1] * gating),
                num_experts=shape[2], local_experts=shape[3], experts_per_token=shape[4], repeat=1,
            )  # fmt: skip

            def physics(tokens: float) -> float:
                return expert_cost(replace(form, tokens=int(tokens)), self._fit, self._gpu).seconds

            grid = ResidualGrid([table["tokens"][rows]], table["seconds"][rows], physics)
            self._grids[kernel, shape, gating] = grid
        return grid


def _distance(shape: Shape, other: Shape) -> float:
    """Sum of squared log ratios: tokens an expert and its weights count, each by its factors."""
    return sum(math.log(a / b) ** 2 for a, b in zip(shape, other, strict=True))
