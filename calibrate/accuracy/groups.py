"""Groups of rows and their errors."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from calibrate.accuracy.predict import Prediction

UNSATURATED_CLIENTS = 64
"""Rows with more clients count as saturated: engines queue, and their TTFT is the queue."""

GroupKey = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Errors:
    """Absolute per cent: median, mean, P90; bias: median signed per cent. None without rows."""

    n: int
    median: float | None
    mean: float | None
    p90: float | None
    bias: float | None

    @classmethod
    def of(cls, relative: Iterable[float]) -> "Errors":
        """Return the statistics of signed relative errors."""
        values = [100 * error for error in relative]
        if not values:
            return cls(0, None, None, None, None)
        sizes = [abs(value) for value in values]
        return cls(
            len(values),
            statistics.median(sizes),
            statistics.fmean(sizes),
            float(np.percentile(sizes, 90)),
            statistics.median(values),
        )

    def as_dict(self) -> dict[str, float | None]:
        """Return the figures, rounded to a hundredth of a per cent."""
        names = ("median", "mean", "p90", "bias")
        values = ((name, getattr(self, name)) for name in names)
        return {name: None if value is None else round(value, 2) for name, value in values}


@dataclass(frozen=True, slots=True)
class Group:
    """What was asked of one kind of rows and what came of it."""

    name: str
    n: int
    predicted: int
    tpot: Errors
    ttft: Errors
    key: GroupKey | None = None


def is_moe(prediction: Prediction) -> bool:
    """Whether the row's network has experts."""
    return prediction.moe


def is_saturated(prediction: Prediction) -> bool:
    """Whether the engine's queues, not its steps, decide the row."""
    row = prediction.row
    return (
        row.concurrency > UNSATURATED_CLIENTS
        or prediction.kv_limited
        or prediction.front_end_limited
    )


def group_of(name: str, predictions: Sequence[Prediction], key: GroupKey | None = None) -> Group:
    """Return the figures of some predictions."""
    done = [p for p in predictions if not p.why_not]
    return Group(
        name,
        len(predictions),
        len(done),
        Errors.of(p.tpot_error for p in done if p.has_tpot),
        Errors.of(p.ttft_error for p in done),
        key,
    )


CLASSES: dict[str, Callable[[Prediction], bool]] = {
    "dense, unsaturated": lambda p: not is_moe(p) and not is_saturated(p),
    "dense, saturated": lambda p: not is_moe(p) and is_saturated(p),
    "MoE, unsaturated": lambda p: is_moe(p) and not is_saturated(p),
    "MoE, saturated": lambda p: is_moe(p) and is_saturated(p),
}
"""The classes that are reported apart."""


def groups(predictions: Sequence[Prediction]) -> list[Group]:
    """Return one group a (gpu, engine, model, precision), sorted."""
    keys = sorted({p.row.group for p in predictions})
    return [
        group_of(" ".join(filter(None, key)), [p for p in predictions if p.row.group == key], key)
        for key in keys
    ]
