"""Which numbers are fitted to which rows, and the source file that holds what came out."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from calibrate.accuracy.fit import Array, Fit, Fitter, Free, values_of
from calibrate.accuracy.fitted import base_costs, group_name
from calibrate.accuracy.groups import UNSATURATED_CLIENTS
from calibrate.accuracy.pool import PredictorPool
from calibrate.accuracy.rows import Row
from calibrate.accuracy.scenarios import network_of
from twin.llm.engine_version import ENGINES

ROWS_A_GROUP = 16
"""Rows of a group that a fit sees: enough to hold its numbers, and no group outweighs others."""

_ROUNDS = 4

# Starts and likely spreads (of the logarithm). Host times: `hwmodels.host`. Turnaround: 9-47 ms
# explained public runs. Launches outside graphs: 20 us an operation at most on Hopper hosts, a
# few when operations are fused and queued. Table factors start at 1 and are held near it, except
# decode, whose tables were taken with KV left in the L2 (x 1.44 in earlier work; the measured
# model prices it cold).
SHARED = (
    Free("gap_s", 0.3e-3, 1.0),
    Free("gap_per_seq_s", 8e-6, 1.0),
    Free("api_s", 4e-3, 0.5),
    Free("turnaround_s", 10e-3, 0.8),
    Free("no_full_graph_layer_s", 0.06e-3, 0.8),
    Free("eager_op_s", 6e-6, 0.7),
    Free("product_overlap_s", 0.7e-6, 0.8),
    Free("decode", 1.0, 0.3),
    Free("prefill", 1.0, 0.2),
    Free("elementwise", 1.2, 0.4),
    Free("collective", 1.0, 0.2),
    Free("gemm", 1.0, 0.1),
)
_OWN = ("gap_s", "gap_per_seq_s", "api_s", "turnaround_s", "product_overlap_s", "elementwise",
        "no_full_graph_layer_s", "collective", "eager_op_s")  # fmt: skip
_OWN_SPREAD = 0.4
FRONT_END = Free("front_end_event_s", 0.11e-3, 0.2, "trtllm")


def free_numbers(engines: Iterable[str]) -> list[Free]:
    """Return what is fitted: shared numbers, and engines' factors on some of them."""
    own = [Free(name, 1.0, _OWN_SPREAD, engine) for engine in engines for name in _OWN]
    return [*SHARED, *own, FRONT_END]


def rows_to_fit(rows: Sequence[Row], per_group: int = ROWS_A_GROUP) -> list[Row]:
    """Return some unsaturated rows of dense networks, spread over each group's settings."""
    by_group: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        arch = network_of(row)
        if arch is None or arch.moe is not None or row.concurrency > UNSATURATED_CLIENTS:
            continue
        by_group[group_name(row)].append(row)
    chosen: list[Row] = []
    for name in sorted(by_group):
        group = sorted(by_group[name], key=lambda r: (r.tp, r.concurrency, r.isl, r.osl, r.row_id))
        places = np.linspace(0, len(group) - 1, min(per_group, len(group)))
        chosen += [group[round(place)] for place in places]
    return chosen


def fit_serving(
    rows: Sequence[Row], jobs: int, progress: Callable[[str], None] | None = None
) -> dict[str, Any]:
    """Return the fit as `hwmodels.serving_fits` holds it."""
    chosen = rows_to_fit(rows)
    names = [group_name(row) for row in chosen]
    free = free_numbers(ENGINES)
    with PredictorPool(jobs) as pool:
        fitter = Fitter(chosen, base_costs(), free, pool)
        fit = fitter.run(_ROUNDS)
        if progress is not None:
            progress(f"{len(chosen)} rows, loss {fit.loss[0]:.0f} to {fit.loss[-1]:.0f}")
    logs = np.array([math.log(fit.values[f.key]) for f in free])
    left_out = {
        name: _absolute(free, _without(fitter, fit, names, name)) for name in sorted(set(names))
    }
    return {
        "fitted_on": f"{len(chosen)} unsaturated rows of {len(set(names))} groups of dense "
        "networks",
        "groups": sorted(set(names)),
        "values": _absolute(free, logs),
        "left_out": left_out,
    }


def _without(fitter: Fitter, fit: Fit, names: Sequence[str], group: str) -> Array:
    return fitter.without(fit, np.array([name != group for name in names]))


def _absolute(free: Sequence[Free], logs: Array) -> dict[str, float]:
    """Return the numbers by engine, factors multiplied out."""
    return {
        f"{engine}.{name}": float(f"{value:.4g}")
        for engine in ENGINES
        for name, value in values_of(engine, free, logs).items()
        if name != FRONT_END.name or engine == FRONT_END.engine
    }


def literal(fits: dict[str, Any]) -> str:
    """Return the source of `hwmodels/serving_fits.py`."""
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
