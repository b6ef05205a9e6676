"""Predicts every row of a table with the committed costs and with its group left out."""

from collections.abc import Callable, Sequence

from calibrate.accuracy.fitted import fitted_costs, held_out_costs
from calibrate.accuracy.pool import PredictorPool
from calibrate.accuracy.predict import Prediction
from calibrate.accuracy.report import Judgement
from calibrate.accuracy.rows import Row

Progress = Callable[[int, int], None]
_AT_ONCE = 32


def judge(
    rows: Sequence[Row], jobs: int, *, reference: bool = True, progress: Progress | None = None
) -> Judgement:
    """Return the predictions of all rows.

    Args:
        rows: the measured points.
        jobs: processes.
        reference: let the reference engine serve rows whose KV cache may run short (slower).
        progress: called with rows done and rows in all.
    """
    costs = fitted_costs()
    apart = [held_out_costs(row) for row in rows]
    asked = [(row, costs[row.engine]) for row in rows]
    again = [(row, held) for row, held in zip(rows, apart, strict=True) if held is not None]
    found: list[Prediction] = []
    total = len(asked) + len(again)
    with PredictorPool(jobs) as pool:
        for start in range(0, total, _AT_ONCE):
            found += pool.predict((asked + again)[start : start + _AT_ONCE], reference=reference)
            if progress is not None:
                progress(len(found), total)
    fitted, left_out = found[: len(rows)], iter(found[len(rows) :])
    held_out = [
        one if held is None else next(left_out) for one, held in zip(fitted, apart, strict=True)
    ]
    return Judgement(fitted, held_out, [held is not None for held in apart])
