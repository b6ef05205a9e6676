"""Fits few physical numbers to measured rows: damped least squares in their logarithms."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from calibrate.accuracy.costs import ServingCosts
from calibrate.accuracy.pool import PredictorPool
from calibrate.accuracy.rows import Row

Array = NDArray[np.float64]

# What an error weighs: those that are asked of TPOT and TTFT.
_TPOT_SCALE, _TTFT_SCALE = 0.05, 0.12
_STEP = 0.1  # of the logarithm, for differences
_SOFT = 1.0  # residuals beyond it count linearly


@dataclass(frozen=True, slots=True)
class Free:
    """A number that a fit may turn.

    One without an engine holds for all; one with an engine and a twin without it is that
    engine's factor on the twin, so that an engine nobody measured keeps what the others share.

    Attributes:
        name: of `calibrate.accuracy.costs.NAMES`.
        start: where it begins, and where it is drawn back to.
        spread: standard deviation of its logarithm around `start` that is thought likely.
        engine: the engine it belongs to; empty: shared by all.
    """

    name: str
    start: float
    spread: float = 0.7
    engine: str = ""

    @property
    def key(self) -> str:
        """Its name among all engines' numbers."""
        return f"{self.engine}.{self.name}" if self.engine else self.name


@dataclass(slots=True)
class Fit:
    """Numbers found, and how well they are held by the rows.

    Attributes:
        values: by `Free.key`.
        loss: sum of weighted, softened squares before and after.
        jacobian, residuals: at the numbers found, for leaving rows out.
    """

    values: dict[str, float]
    loss: list[float] = field(default_factory=list)
    jacobian: Array = field(default_factory=lambda: np.zeros((0, 0)))
    residuals: Array = field(default_factory=lambda: np.zeros(0))


def costs_of(
    row: Row, base: Mapping[str, ServingCosts], free: Sequence[Free], logs: Array
) -> ServingCosts:
    """Return the costs that apply to a row."""
    return base[row.engine].with_values(values_of(row.engine, free, logs))


def values_of(engine: str, free: Sequence[Free], logs: Array) -> dict[str, float]:
    """Return the numbers of an engine: what is shared times its own factors."""
    values: dict[str, float] = {}
    for one, log in zip(free, logs, strict=True):
        if one.engine in ("", engine):
            values[one.name] = values.get(one.name, 1.0) * math.exp(log)
    return values


class Fitter:
    """Least squares over rows.

    Args:
        rows: what is fitted on.
        base: costs of each engine; those not free stay.
        free: the numbers to find.
        pool: predicts.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        base: Mapping[str, ServingCosts],
        free: Sequence[Free],
        pool: PredictorPool,
    ) -> None:
        self.rows, self.free = list(rows), list(free)
        self._base, self._pool = base, pool
        self._start = np.array([math.log(f.start) for f in free])
        self._spread = np.array([f.spread for f in free])

    def run(self, rounds: int = 3, start: Array | None = None) -> Fit:
        """Return the numbers after some Gauss-Newton rounds."""
        logs = self._start.copy() if start is None else start.copy()
        residuals = self.residuals(logs)
        losses = [self._loss(residuals, logs)]
        jacobian = np.zeros((residuals.size, logs.size))
        for _ in range(rounds):
            jacobian = self._jacobian(logs, residuals)
            logs, residuals, loss = self._improve(logs, residuals, jacobian, losses[-1])
            losses.append(loss)
            if losses[-2] - loss < 0.002 * losses[-2]:
                break
        values = {f.key: math.exp(log) for f, log in zip(self.free, logs, strict=True)}
        return Fit(values, losses, jacobian, residuals)

    def residuals(self, logs: Array) -> Array:
        """Return weighted log errors, TPOT and TTFT of each row in turn.

        NaN: not predicted, or the server's process is what limits.
        """
        asked = [(row, costs_of(row, self._base, self.free, logs)) for row in self.rows]
        found = self._pool.predict(asked, reference=False)
        errors = [
            (
                math.log(p.tpot_s / p.row.tpot_s) / _TPOT_SCALE,
                math.log(p.ttft_s / p.row.ttft_s) / _TTFT_SCALE,
            )
            if not p.front_end_limited
            else (math.nan, math.nan)
            for p in found
        ]
        return np.array(errors).ravel()

    def without(self, fit: Fit, keep: Array, rounds: int = 2) -> Array:
        """Return the logs that the kept rows alone give.

        The fit of all rows lends its derivatives, no more: steps are taken on the kept rows'
        errors, and only if they lower their loss.

        Args:
            fit: of all rows.
            keep: one truth value a row.
            rounds: steps.
        """
        places = np.flatnonzero(keep)
        kept = Fitter([self.rows[place] for place in places], self._base, self.free, self._pool)
        jacobian = fit.jacobian[np.repeat(keep, 2)]
        logs = np.array([math.log(fit.values[f.key]) for f in self.free])
        residuals = fit.residuals[np.repeat(keep, 2)]
        loss = self._loss(residuals, logs)
        for _ in range(rounds):
            logs, residuals, loss = kept._improve(logs, residuals, jacobian, loss)
        return logs

    def _jacobian(self, logs: Array, residuals: Array) -> Array:
        columns = []
        for index, free in enumerate(self.free):
            mine = [place for place, row in enumerate(self.rows) if free.engine in ("", row.engine)]
            column = np.zeros_like(residuals)
            columns.append(column)
            if not mine:  # no row speaks of it: it stays where it begins
                continue
            stepped = logs.copy()
            stepped[index] += _STEP
            part = Fitter([self.rows[place] for place in mine], self._base, self.free, self._pool)
            rows = np.repeat(np.array(mine) * 2, 2) + np.tile([0, 1], len(mine))
            column[rows] = (part.residuals(stepped) - residuals[rows]) / _STEP
        return np.column_stack(columns)

    def _improve(
        self, logs: Array, residuals: Array, jacobian: Array, loss: float
    ) -> tuple[Array, Array, float]:
        """Take the largest damped step that lowers the loss."""
        for damping in (1e-3, 0.1, 1.0, 10.0):
            tried = logs + np.clip(self._solve(jacobian, residuals, logs, damping), -1.0, 1.0)
            new = self.residuals(tried)
            new_loss = self._loss(new, tried)
            if new_loss < loss:
                return tried, new, new_loss
        return logs, residuals, loss

    def _solve(self, jacobian: Array, residuals: Array, logs: Array, damping: float) -> Array:
        good = np.isfinite(residuals) & np.isfinite(jacobian).all(axis=1)
        matrix, errors = jacobian[good], residuals[good]
        weights = 1 / np.sqrt(1 + (errors / _SOFT) ** 2)  # soft-L1, reweighted
        prior = 1 / self._spread**2
        normal = matrix.T @ (weights[:, None] * matrix) + np.diag(prior)
        normal += damping * np.diag(np.diag(normal))
        gradient = matrix.T @ (weights * errors) + prior * (logs - self._start)
        return -np.linalg.solve(normal, gradient)

    def _loss(self, residuals: Array, logs: Array) -> float:
        errors = residuals[np.isfinite(residuals)]
        soft = 2 * _SOFT**2 * (np.sqrt(1 + (errors / _SOFT) ** 2) - 1)
        return float(soft.sum() + (((logs - self._start) / self._spread) ** 2).sum())
