"""Dense products from tables, one for each number format."""

import math
from collections.abc import Mapping
from dataclasses import replace

from hwmodels.efficiency import GemmFit
from hwmodels.gemm import gemm_cost, quantised_compute
from hwmodels.measured.grid import ResidualGrid
from hwmodels.measured.tables import variants
from hwmodels.ops import Gemm, OpCost, Source
from hwmodels.profile import Table
from hwmodels.spec import GpuSpec


class MeasuredGemm:
    """Prices dense products.

    Most shapes of real networks, output heads above all, aren't in public tables: their ratio to
    the physics form is interpolated over (n, k) at the neighbouring m, then along m. Kernels
    aren't monotone in m, and neither is the result.

    Args:
        fp8_kernel: the table FP8 products take: "fp8" (a scale a tensor or channel) or
            "fp8_block".
    """

    def __init__(
        self, tables: Mapping[str, Table], fit: GemmFit, gpu: GpuSpec, fp8_kernel: str = "fp8"
    ) -> None:
        self._tables, self._fit, self._gpu = tables, fit, gpu
        self._fp8_kernel = fp8_kernel
        self._known = variants(tables, "gemm")
        self._grids: dict[str, ResidualGrid] = {}

    def cost(self, op: Gemm) -> OpCost:
        """Return the cost of a dense product, all repeats."""
        base = gemm_cost(op, self._fit, self._gpu)
        if op.m <= 0:
            return base
        found = self.kernel_for(op)
        if found is None:
            return base
        kernel, own = found
        ratio, source = self._ratio(op, kernel)
        seconds = base.seconds * math.exp(ratio)
        return OpCost(seconds, base.bound, source if own else Source.EXTRAPOLATED, base.kernels)

    def kernel_for(self, op: Gemm) -> tuple[str, bool] | None:
        """Return the table of a product and whether it measures that very format.

        Without a table of its own, a weight-only format takes bf16's ratio to physics (the kernel
        computes in bf16); an 8-bit product that has none keeps to physics.
        """
        if quantised_compute(op.compute_dtype, self._gpu):
            if op.compute_dtype != "fp8":
                return None
            choices = [self._fp8_kernel, "fp8", "fp8_block"]
            own = next((name for name in choices if name in self._known), None)
            return (own, True) if own else None
        if op.weight_dtype in self._known:
            return op.weight_dtype, True
        return ("bf16", False) if "bf16" in self._known else None

    def _ratio(self, op: Gemm, kernel: str) -> tuple[float, Source]:
        grid = self._grid(kernel)
        ratio, source = grid.at(op.m, op.n, op.k)
        beyond = op.m / grid.axes[0][-1]
        if beyond > 1:
            # Above the table the form alone extrapolates best; the edge's ratio fades over an
            # octave, so that there is no jump.
            ratio *= max(0.0, 1 - math.log2(beyond))
        return ratio, source

    def _grid(self, kernel: str) -> ResidualGrid:
        grid = self._grids.get(kernel)
        if grid is None:
            table = self._tables[f"gemm.{kernel}"]
            form = _FORMS[kernel]

            def physics(m: float, n: float, k: float) -> float:
                op = replace(form, m=int(m), n=int(n), k=int(k))
                return gemm_cost(op, self._fit, self._gpu).seconds

            columns = [table[name] for name in ("m", "n", "k")]
            grid = self._grids[kernel] = ResidualGrid(columns, table["seconds"], physics, _TRUST)
        return grid


# How far gaps follow the (m, n, k) axes: k is by far the smoothest.
_TRUST = (1.0, 1.0, 2.0)

# What the physics form is told of each table's kernel.
_FORMS: dict[str, Gemm] = {
    "bf16": Gemm(1, 1, 1),
    "fp8": Gemm(1, 1, 1, "fp8", "fp8"),
    "fp8_block": Gemm(1, 1, 1, "fp8", "fp8"),
    "int8": Gemm(1, 1, 1, "bf16", "int8"),
    "int4": Gemm(1, 1, 1, "bf16", "int4"),
}
