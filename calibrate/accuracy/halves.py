"""Fits costs to half a group's rows and judges them on the other half.

The other groups' fit is where it starts and what it is drawn to, so that a half that cannot tell a
number leaves it alone.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from calibrate.accuracy.costs import ServingCosts
from calibrate.accuracy.fit import Fitter, Free
from calibrate.accuracy.fitted import group_name, held_out_costs
from calibrate.accuracy.groups import UNSATURATED_CLIENTS, Group, group_of
from calibrate.accuracy.pool import PredictorPool
from calibrate.accuracy.predict import Prediction
from calibrate.accuracy.rows import Row
from calibrate.accuracy.scenarios import network_of
from calibrate.accuracy.serving_fit import (
    MOE_SHARED,
    ONLY_TRTLLM,
    SHARED,
    by_settings,
    may_steer,
    spread,
)
from hwmodels.serving_fits import SERVING_FITS
from twin.errors import InputError

_SPREAD = 0.5  # of the logarithm, around the other groups' numbers
_ROUNDS = 3
_MOST_ROWS = 32  # of the half that is fitted on


def judge_halves(rows: Sequence[Row], jobs: int) -> list[Group]:
    """Return the errors on the halves that were not fitted on: a group each, and kinds of network.

    Rows alternate between the halves in the order of (tp, concurrency, isl, osl).

    Raises:
        InputError: no group has rows for both halves.
    """
    by_group: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        name = group_name(row)
        if may_steer(row) and name in SERVING_FITS["left_out"] and network_of(row) is not None:
            by_group[name].append(row)
    found: list[Group] = []
    kinds: dict[bool, list[Prediction]] = {False: [], True: []}
    with PredictorPool(jobs) as pool:
        for name in sorted(by_group):
            unseen = _unseen_half(by_settings(by_group[name]), pool)
            if unseen:
                found.append(group_of(name, unseen))
                kinds[unseen[0].moe] += unseen
    if not found:
        raise InputError(
            f"no group that was fitted on has two rows of at most {UNSATURATED_CLIENTS} clients",
            where="--halves",
            remedy="give more rows",
        )
    pooled = [group_of("dense networks", kinds[False]), group_of("with experts", kinds[True])]
    return [*found, *(group for group in pooled if group.n)]


def _unseen_half(rows: Sequence[Row], pool: PredictorPool) -> list[Prediction]:
    """Fit on every other row, and predict those between them that are not saturated."""
    seen, unseen = list(rows[0::2]), list(rows[1::2])
    chosen = spread(seen, _MOST_ROWS)
    engine, costs = rows[0].engine, held_out_costs(rows[0])
    if costs is None:
        raise ValueError(f"{group_name(rows[0])} has no held-out fit")
    fitter = Fitter(chosen, {engine: costs}, _free(rows[0], costs), pool)
    fitted = costs.with_values(fitter.run(_ROUNDS).values)
    asked = [(row, fitted) for row in unseen]
    return [p for p in pool.predict(asked, reference=False) if not _limited(p)]


def _limited(prediction: Prediction) -> bool:
    return prediction.kv_limited or prediction.front_end_limited


def _free(row: Row, costs: ServingCosts) -> list[Free]:
    """The numbers of the row's kind of network, from where the other groups leave them."""
    arch = network_of(row)
    moe = arch is not None and arch.moe is not None
    kinds = [*SHARED, *(MOE_SHARED if moe else ())]
    kinds += [replace(free, engine="") for free in ONLY_TRTLLM if row.engine == "trtllm"]
    now = {free.name: value_of(costs, free.name) for free in kinds}
    return [
        replace(free, start=now[free.name], spread=min(free.spread, _SPREAD))
        for free in kinds
        if now[free.name] > 0 and math.isfinite(now[free.name])
    ]


def value_of(costs: ServingCosts, name: str) -> float:
    """Return one of the numbers a fit turns, as these costs have it."""
    for part in (costs, costs.host, costs.corrections, costs.corrections.scales):
        if hasattr(part, name):
            return float(getattr(part, name))
    raise KeyError(name)
