"""From a measured row to the scenario that predicts it."""

from pathlib import Path
from typing import Any

from calibrate.accuracy.recipes import Recipe, recipe_of
from calibrate.accuracy.rows import Row
from twin.errors import InputError
from twin.llm.arch import ModelArch
from twin.llm.models import find_model
from twin.load.resolve import resolve_scenario
from twin.load.validation import validate
from twin.scenario import Scenario, ScenarioFile

_SEED = 0
# Precisions that a checkpoint has itself; the others are named beside the network.
_NATIVE = ("gpt-oss", "Kimi", "DeepSeek", "MiniMax")


def scenario_of(row: Row) -> Scenario:
    """Return what predicts a row, its clients without a turnaround.

    Raises:
        InputError: the network is not known, or the twin cannot simulate such a deployment.
    """
    recipe = recipe_of(row)
    arch = network_of(row)
    if arch is None:
        raise InputError(f"network {row.model!r} is not known", where=row.where)
    if recipe.speculative:
        raise InputError("speculative decoding is not simulated", where=row.where)
    data = {
        "schema_version": 1,
        "name": row.row_id,
        "llm": arch.name,
        "gpu": row.gpu,
        "engine": {"name": row.engine, "version": recipe.version},
        "parallelism": {"tp": row.tp, "pp": row.pp, "dp": row.attention_dp, "ep": row.ep},
        "policy": {**recipe.policy, **_quantization(row, arch)},
        "workload": _workload(row, recipe),
        "seed": _SEED,
    }
    return resolve_scenario(validate(ScenarioFile, data, row.where), Path(), where=row.where)


def network_of(row: Row) -> ModelArch | None:
    """Return the checkpoint that a row names; None: it is not known."""
    native = any(name in row.model for name in _NATIVE)
    return find_model(row.model if native else f"{row.model} {row.precision}")


def _quantization(row: Row, arch: ModelArch) -> dict[str, str]:
    """FP8 with one scale a tensor, where the row says so of a network published in bf16."""
    if row.gemm_quant == "fp8" and arch.checkpoint_dtype == "bf16":
        return {"quantization": "fp8"}
    return {}


def _workload(row: Row, recipe: Recipe) -> dict[str, Any]:
    return {
        "kind": "closed_loop",
        "concurrency": row.concurrency,
        "num_requests": recipe.requests_per_client * row.concurrency,
        "prompt_tokens": _length(row.isl, row.exact),
        "output_tokens": _length(row.osl, row.exact),
    }


def _length(nominal: int, exact: bool) -> Any:
    if exact:
        return nominal
    return {"kind": "uniform", "low": int(0.8 * nominal), "high": nominal}
