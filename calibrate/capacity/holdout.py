"""Leave-one-out: each row predicted by a fit that has not seen it."""

from collections.abc import Sequence
from dataclasses import dataclass

from calibrate.capacity.fit import REFERENCE, FitPlan, eligible, fit
from calibrate.capacity.rows import CapacityRow
from twin.llm.capacity import capacity


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Relative error of one row under the fit to the others of its version."""

    row: CapacityRow
    error: float


def leave_one_out(rows: Sequence[CapacityRow], plan: FitPlan = REFERENCE) -> list[LeftOut]:
    """Return the error of every fitted row of a version when left out; [] if too few rows."""
    own = eligible(plan, rows)
    if len(own) <= len(plan.fitted):
        return []
    left_out = []
    for row in own:
        parameters = fit(plan, [other for other in own if other is not row], None)
        if parameters is not None and row.query is not None:
            blocks = capacity(row.query, parameters).kv_blocks
            left_out.append(LeftOut(row, blocks / row.blocks - 1))
    return left_out
