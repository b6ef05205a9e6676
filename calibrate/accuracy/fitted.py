"""The committed fit: costs of each engine, and those with a group left out."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calibrate.accuracy.costs import NAMES, ServingCosts
from calibrate.accuracy.rows import Row
from hwmodels.host import prior_host_costs
from hwmodels.serving_fits import SERVING_FITS
from twin.llm.engine_version import ENGINES


def base_costs() -> dict[str, ServingCosts]:
    """Return what a fit starts from, by engine: the priors."""
    return {engine: ServingCosts(prior_host_costs(engine)) for engine in ENGINES}


def with_fit(base: ServingCosts, engine: str, values: Mapping[str, float]) -> ServingCosts:
    """Return costs with the numbers of a fit: those shared and those of `engine`.

    Args:
        base: what is not fitted.
        engine: vllm, sglang or trtllm.
        values: by `calibrate.accuracy.fit.Free.key`.
    """
    mine = {name: values[name] for name in NAMES if name in values}
    own = {name: values[f"{engine}.{name}"] for name in NAMES if f"{engine}.{name}" in values}
    costs = base.with_values({**mine, **own})
    return replace(costs, host=replace(costs.host, fitted=True))


def fitted_costs(fits: Mapping[str, Any] = SERVING_FITS) -> dict[str, ServingCosts]:
    """Return the committed costs by engine."""
    return {engine: with_fit(base, engine, fits["values"]) for engine, base in base_costs().items()}


def held_out_costs(row: Row, fits: Mapping[str, Any] = SERVING_FITS) -> ServingCosts | None:
    """Return costs fitted without the row's group; None: the group was never fitted on."""
    left_out = fits["left_out"].get(group_name(row))
    if left_out is None:
        return None
    values = {**fits.get("values", {}), **left_out}
    return with_fit(base_costs()[row.engine], row.engine, values)


def group_name(row: Row) -> str:
    """Return how the fit names a row's group: (gpu, engine, model).

    DeepSeek-R1 is DeepSeek-V3's network, and the tables hold the same measurements under both
    names: they are one group, or leaving one out would leave its twin in.
    """
    model = row.model.replace("DeepSeek-R1", "DeepSeek-V3")
    return " ".join((row.gpu, row.engine, model))
