"""Holds the capacity model against measured KV-cache sizes."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.capacity.fit import PLANS, eligible
from calibrate.capacity.rows import CapacityRow
from twin.errors import InputError
from twin.llm.capacity import capacity
from twin.llm.engine_version import parse_version
from twin.llm.overhead_model import OverheadParameters, parameters_of

FITTED = "fitted"
FITTED_ALONE = "fitted on this row"
HELD_OUT = "held out"
IDENTITY = "identity"


@dataclass(frozen=True, slots=True)
class Prediction:
    """One row of the accuracy table; `blocks` None: the row could not be predicted."""

    row: CapacityRow
    blocks: int | None
    error: float | None
    kind: str
    remark: str = ""


def predict(rows: Sequence[CapacityRow]) -> list[Prediction]:
    """Return one prediction a row, in order."""
    return [_predict(row, rows) for row in rows]


def median_error(predictions: Sequence[Prediction]) -> float | None:
    """Return the median of absolute relative errors; None without any."""
    errors = [abs(p.error) for p in predictions if p.error is not None and p.kind != IDENTITY]
    return statistics.median(errors) if errors else None


def worst_error(predictions: Sequence[Prediction]) -> float | None:
    """Return the largest absolute relative error; None without any."""
    errors = [abs(p.error) for p in predictions if p.error is not None and p.kind != IDENTITY]
    return max(errors, default=None)


def of_version(predictions: Sequence[Prediction], version: str) -> list[Prediction]:
    """Return the predictions of vLLM rows of one version, experts left out."""
    wanted = parameters_of("vllm", version)[0]
    return [
        p
        for p in predictions
        if p.row.engine == "vllm"
        and p.row.query is not None
        and p.row.query.arch.moe is None
        and _own_parameters(p.row) == wanted
    ]


def _predict(row: CapacityRow, rows: Sequence[CapacityRow]) -> Prediction:
    if row.query is None:
        if "identity" in row.model:
            # Nothing to predict: the engine's tokens are its blocks times the block size.
            return Prediction(row, row.blocks, 0.0, IDENTITY, f"{row.tokens:,} tokens / block size")
        return Prediction(row, None, None, "", "model unknown")
    try:
        result = capacity(row.query)
    except InputError as refused:
        raise InputError(refused.problem, where=row.where, remedy=refused.remedy) from None
    error = result.kv_blocks / row.blocks - 1
    own = _own_parameters(row)
    remark = ""
    if row.query.free_after_load_bytes is not None:
        kind, remark = HELD_OUT, "free memory after loading taken from the log"
    elif own is None or not any(row in eligible(plan, rows) for plan in PLANS):
        kind = HELD_OUT
    else:
        kind = FITTED_ALONE if own.exactly_determined else FITTED
    if row.query.arch.num_sliding_layers:
        remark = "windowed layers are outside the model"
        if row.query.arch.notes:
            remark += "; " + "; ".join(row.query.arch.notes)
    if row.query.gpu_memory_utilization is None:
        remark = f"utilisation not stated: {result.gpu_memory_utilization} taken"
    return Prediction(row, result.kv_blocks, error, kind, remark)


def _own_parameters(row: CapacityRow) -> OverheadParameters | None:
    """Return the overhead fitted for exactly this row's version, None if it is borrowed."""
    parameters, _ = parameters_of(row.engine, row.version)
    fitted_version = parse_version(parameters.version) or (0, 0, 0)
    return parameters if row.version_key == (parameters.engine, fitted_version) else None
