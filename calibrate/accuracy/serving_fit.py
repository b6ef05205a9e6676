"""Which numbers are fitted to which rows, and the source file that holds what came out."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from calibrate.accuracy.costs import ServingCosts
from calibrate.accuracy.fit import Array, Fit, Fitter, Free, values_of
from calibrate.accuracy.fitted import base_costs, group_name, with_fit
from calibrate.accuracy.groups import UNSATURATED_CLIENTS
from calibrate.accuracy.pool import PredictorPool
from calibrate.accuracy.recipes import recipe_of
from calibrate.accuracy.rows import Row
from calibrate.accuracy.scenarios import network_of
from twin.errors import InputError
from twin.llm.engine_version import ENGINES

ROWS_A_GROUP = 16
"""Rows of a group that a fit sees: enough to hold its numbers, and no group outweighs others."""

# Starts and likely spreads (of the logarithm). Host times: `hwmodels.host`. Turnaround: 9-47 ms
# explained public runs. Between kernels of a CUDA graph pass 1.36 us (measured,
# `hwmodels.efficiency`), of which tables of single kernels may hold a part. TensorRT-LLM's tables
# of FP8 products begin at 12.0 us where those of bf16 begin at 2.4 (H100 and H200 alike): 9.6 us
# of quantisation and launch that engines fuse and hide. The other factors start at 1.
SHARED = (
    Free("gap_s", 0.1e-3, 1.0),
    Free("gap_per_seq_s", 5e-6, 0.8),
    Free("api_s", 4e-3, 0.5),
    Free("turnaround_s", 10e-3, 0.8),
    Free("no_full_graph_layer_s", 0.08e-3, 0.5),
    Free("kernel_gap_s", 0.2e-6, 0.7),
    Free("wide_all_reduce_s", 3e-6, 0.7),
    Free("compute", 1.1, 0.2),
    Free("elementwise", 1.0, 0.2),
)
_OWN = ("gap_s", "gap_per_seq_s", "api_s", "wide_all_reduce_s", "no_full_graph_layer_s")
_OWN_SPREAD = 0.4
ONLY_TRTLLM = (Free("product_overlap_s", 9.6e-6, 0.1, "trtllm"),)

# The server's one process: 8B runs of 128 clients level off at 9.2 thousand tokens a second
# whatever tp. Not fitted: saturated rows do not steer a fit.
FIXED = {"trtllm.front_end_event_s": 1 / 9200, "eager_op_s": 12e-6}

_ROUNDS = 5


# Of networks with experts, on top of what dense ones have settled.
MOE_SHARED = (
    Free("experts", 0.9, 0.3),
    Free("many_tokens_experts", 1.5, 0.3),
    Free("no_full_graph_moe_layer_s", 0.5e-3, 1.0),
)
_MOE_OWN = (("experts", 0.15), ("no_full_graph_moe_layer_s", 1.0))


def dense_numbers(engines: Iterable[str]) -> list[Free]:
    """Return what dense networks settle: shared numbers, and engines' factors on some of them."""
    own = [Free(name, 1.0, _OWN_SPREAD, engine) for engine in engines for name in _OWN]
    return [*SHARED, *own, *ONLY_TRTLLM]


def moe_numbers(engines: Iterable[str]) -> list[Free]:
    """Return what networks with experts settle."""
    own = [Free(name, 1.0, spread, engine) for engine in engines for name, spread in _MOE_OWN]
    return [*MOE_SHARED, *own]


def rows_to_fit(
    rows: Sequence[Row], per_group: int = ROWS_A_GROUP, *, moe: bool = False
) -> list[Row]:
    """Return some unsaturated rows, spread over each group's settings.

    Args:
        rows: all rows.
        per_group: most rows of a group.
        moe: of networks with experts, or of those without.
    """
    by_group: dict[str, dict[tuple[object, ...], Row]] = defaultdict(dict)
    for row in rows:
        arch = network_of(row)
        if arch is None or (arch.moe is not None) is not moe:
            continue
        if may_steer(row):
            by_group[group_name(row)].setdefault(row.measurement, row)
    chosen: list[Row] = []
    for name in sorted(by_group):
        chosen += spread(by_settings(by_group[name].values()), per_group)
    return chosen


def may_steer(row: Row) -> bool:
    """Whether a fit may see a row: few clients, and no drafting that nobody simulates."""
    return row.concurrency <= UNSATURATED_CLIENTS and not recipe_of(row).speculative


def by_settings(rows: Iterable[Row]) -> list[Row]:
    """Return rows in the order of their ranks, clients and lengths."""
    return sorted(rows, key=lambda row: (row.tp, row.concurrency, row.isl, row.osl, row.row_id))


def spread(rows: Sequence[Row], most: int) -> list[Row]:
    """Return at most so many rows, evenly over all of them."""
    places = np.linspace(0, len(rows) - 1, min(most, len(rows)))
    return [rows[round(place)] for place in places]


def fit_serving(
    rows: Sequence[Row],
    jobs: int,
    per_group: int = ROWS_A_GROUP,
    progress: Callable[[str], None] | None = None,
) -> dict[str, Any]:
    """Return the fit as `hwmodels.serving_fits` holds it: dense networks first, then experts.

    Args:
        rows: measured rows.
        jobs: processes.
        per_group: most rows of a group that the fit sees.
        progress: told of each stage that is done.

    Raises:
        InputError: there are no rows of one of both kinds of networks.
    """
    calm = [rows_to_fit(rows, per_group, moe=moe) for moe in (False, True)]
    for kind, found in zip(("dense networks", "networks with experts"), calm, strict=True):
        if not found:
            raise InputError(
                f"no row of {kind} with at most {UNSATURATED_CLIENTS} clients to fit on",
                where="--fit",
                remedy="give rows of both dense networks and networks with experts",
            )
    with PredictorPool(jobs) as pool:
        dense = _Stage(calm[0], start_costs(), dense_numbers(ENGINES), pool)
        settled = dense.values()
        base = {e: with_fit(costs, e, settled) for e, costs in start_costs().items()}
        experts = _Stage(calm[1], base, moe_numbers(ENGINES), pool)
        if progress is not None:
            progress(dense.summary())
            progress(experts.summary())
        both = {**settled, **experts.values()}
        left_out = {
            group: stage.values_without(group)
            for stage in (dense, experts)
            for group in stage.groups
        }
    return {
        "fitted_on": f"{len(dense.rows)} unsaturated rows of {len(dense.groups)} groups of dense "
        f"networks and {len(experts.rows)} of {len(experts.groups)} with experts",
        "groups": sorted(left_out),
        "values": _rounded({**FIXED, **both}),
        "left_out": {name: _rounded(left_out[name]) for name in sorted(left_out)},
    }


class _Stage:
    """A fit over some rows, and what it would have been without a group."""

    def __init__(
        self,
        rows: list[Row],
        base: dict[str, ServingCosts],
        free: list[Free],
        pool: PredictorPool,
    ) -> None:
        self.rows, self._free = rows, free
        self._names = [group_name(row) for row in rows]
        self.groups = sorted(set(self._names))
        self._fitter = Fitter(rows, base, free, pool)
        self.fit: Fit = self._fitter.run(_ROUNDS)

    def values(self) -> dict[str, float]:
        """Return the numbers by engine."""
        return self._by_engine(np.array([math.log(self.fit.values[f.key]) for f in self._free]))

    def values_without(self, group: str) -> dict[str, float]:
        """Return the numbers by engine that the other groups give."""
        keep = np.array([name != group for name in self._names])
        return self._by_engine(self._fitter.without(self.fit, keep))

    def summary(self) -> str:
        """Return one line on the fit."""
        losses = " ".join(f"{loss:.0f}" for loss in self.fit.loss)
        return f"{len(self.rows)} rows of {len(self.groups)} groups: loss {losses}"

    def _by_engine(self, logs: Array) -> dict[str, float]:
        return {
            f"{engine}.{name}": value
            for engine in ENGINES
            for name, value in values_of(engine, self._free, logs).items()
        }


def _rounded(values: dict[str, float]) -> dict[str, float]:
    return {key: float(f"{value:.4g}") for key, value in values.items()}


def start_costs() -> dict[str, ServingCosts]:
    """Return the costs that a fit starts from: the priors and what is fixed."""
    return {engine: with_fit(costs, engine, FIXED) for engine, costs in base_costs().items()}


def literal(fits: dict[str, Any]) -> str:
    """Return the source of `hwmodels/serving_fits.py`.

    `left_out` holds what a group had a say in; the other numbers are those of `values`.
    """
    head = (
        '"""Costs of serving engines, fitted to measured closed-loop rows.\n\n'
        "Written by `twin-calibrate accuracy CSV --fit`; do not edit by hand. What the numbers "
        "mean stands in\n`calibrate/accuracy/costs.py`.\n"
        '"""\n\nfrom typing import Any\n\nSERVING_FITS: dict[str, Any] = '
    )
    return head + _pretty(fits) + "\n"


def _pretty(value: Any, indent: int = 0) -> str:
    pad = " " * (indent + 4)
    if isinstance(value, dict) and value:
        items = "".join(f"{pad}{_text(k)}: {_pretty(v, indent + 4)},\n" for k, v in value.items())
        return "{\n" + items + " " * indent + "}"
    if isinstance(value, list) and value:
        items = "".join(f"{pad}{_pretty(v, indent + 4)},\n" for v in value)
        return "[\n" + items + " " * indent + "]"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
