"""A candidate against the default on traffic that no trial has met."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

import numpy as np

from twin.report.numbers import percent
from twin.search.evaluation import Evaluation
from twin.search.judging.error_of_difference import constraint_threshold, margin_error
from twin.search.judging.gains import Gain, judged_gain, relative_gain
from twin.search.judging.pareto import Tried
from twin.search.judging.runs import Runs
from twin.search.judging.told import CONSTRAINTS, capitalised, told_gain
from twin.search.length import Length
from twin.search.objectives import Objective
from twin.search.piece import HELD_OUT, Piece

STRETCHES_PER_SEED = 2
"""A recording is cut into twice as many stretches as seeds would be drawn."""

_FRESH = 0x6A756467


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What came of running a candidate and the default again.

    Attributes:
        tried: the candidate and the trial it comes from.
        over: what the pairs are: seeds, or stretches of the recording.
        gains: by objective, in the problem's order; empty where the default cannot run.
        violations, default_violations: by constraint, relative to its limit: means over seeds,
            or of the whole held-out part of a recording.
        accepted: whether it is worth deploying.
        reasons: what decided, one sentence each.
        close: constraints that it keeps by less than forecast error.
        limit_errors: that error of each constraint, relative to its limit; 0: it is a count.
        lengths: of the runs that the gains are of, under the default where it can run.
    """

    tried: Tried
    over: Literal["seeds", "stretches"]
    gains: tuple[Gain, ...]
    violations: Mapping[str, float]
    default_violations: Mapping[str, float]
    accepted: bool
    reasons: tuple[str, ...]
    close: tuple[str, ...] = ()
    limit_errors: Mapping[str, float] = field(default_factory=dict)
    lengths: tuple[Length, ...] = ()

    @property
    def broken(self) -> dict[str, float]:
        """The constraints that it does not keep."""
        return {name: value for name, value in self.violations.items() if value > 0}

    def gain(self, objective: str) -> Gain | None:
        """Return the gain in an objective."""
        return next((gain for gain in self.gains if gain.objective == objective), None)


@dataclass(frozen=True, slots=True)
class Confirmer:
    """Runs candidates against the default.

    Attributes:
        runs: what runs them.
        objectives: in the problem's order.
        seed: the scenario's, which trials met.
        pairs: how many seeds.
        experts: whether the network is a mixture of experts.
    """

    runs: Runs
    objectives: Sequence[Objective]
    seed: int
    pairs: int
    experts: bool

    def confirm(self, tried: Tried) -> Confirmation:
        """Return what a candidate is worth on fresh traffic, both meeting the same requests."""
        ours, theirs = self._evaluations(tried), self._evaluations(None)
        over: Literal["seeds", "stretches"] = "stretches" if self.runs.recorded else "seeds"
        whole, default_whole = self._whole(tried), self._whole(None)
        told = [whole] if over == "stretches" else ours
        default_told = [default_whole] if over == "stretches" else theirs
        stopped = next((e.infeasible for e in told if e.infeasible), None)
        if stopped is not None:
            why = (f"It cannot run on held-out traffic: {stopped}.",)
            return Confirmation(tried, over, (), {}, _mean(default_told), False, why)
        violations = _mean(told)
        errors = {
            name: margin_error(name, tried.candidate, experts=self.experts) for name in violations
        }
        close = close_to_limits(violations, errors)
        impossible = next((e.infeasible for e in default_told if e.infeasible), None)
        if impossible is not None:
            kept = all(value <= 0 for value in violations.values())
            told_so = (
                f"The default cannot run: {impossible}.",
                *_broken(violations),
                *_close_told(violations, errors),
            )
            return Confirmation(
                tried, over, (), violations, {}, kept, told_so, close, errors, _lengths(ours)
            )
        pairs = [
            (a, b)
            for a, b in zip(theirs, ours, strict=True)
            if a.infeasible is None and b.infeasible is None
        ]
        gains = self._gains(tried, pairs)
        default_violations = _mean(default_told)
        accepted, reasons = decide(
            gains, violations, default_violations, changed=tried.candidate, experts=self.experts
        )
        return Confirmation(
            tried, over, gains, violations, default_violations, accepted, reasons, close, errors,
            _lengths([a for a, _ in pairs]),
        )  # fmt: skip

    def _evaluations(self, tried: Tried | None) -> list[Evaluation]:
        candidate = {} if tried is None else tried.candidate
        seeds = fresh_seeds(self.seed, self.pairs * STRETCHES_PER_SEED)
        if self.runs.recorded:
            share = 1 / len(seeds)
            pieces = [Piece("held_out", seed, share, i * share) for i, seed in enumerate(seeds)]
        else:
            pieces = [Piece("held_out", seed) for seed in seeds[: self.pairs]]
        return [self.runs.evaluate(candidate, piece) for piece in pieces]

    def _whole(self, tried: Tried | None) -> Evaluation:
        return self.runs.evaluate({} if tried is None else tried.candidate, HELD_OUT)

    def _gains(
        self, tried: Tried, pairs: Sequence[tuple[Evaluation, Evaluation]]
    ) -> tuple[Gain, ...]:
        if not pairs:
            return ()
        return tuple(
            judged_gain(
                objective,
                [(a.objectives[objective.name], b.objectives[objective.name]) for a, b in pairs],
                tried.candidate,
                experts=self.experts,
                at_limits=self._at_limits(tried, objective) if objective.needs_slo else None,
            )
            for objective in self.objectives
        )

    def _at_limits(self, tried: Tried, objective: Objective) -> dict[str, float | None]:
        theirs, ours = self.runs.whole({}).at_limits, self.runs.whole(tried.candidate).at_limits
        return {
            name: relative_gain(values[objective.name], ours[name][objective.name], objective)
            for name, values in theirs.items()
        }


def decide(
    gains: Sequence[Gain],
    violations: Mapping[str, float],
    default_violations: Mapping[str, float],
    *,
    changed: Mapping[str, object],
    experts: bool,
) -> tuple[bool, tuple[str, ...]]:
    """Return whether a candidate is worth deploying, and what decided.

    It has to keep every constraint. Then it is, if it keeps one that the default breaks and is
    better there by more than forecast error; or if the first objective that shows a gain or a
    loss shows a gain.

    Args:
        gains: by objective, in the order in which they decide.
        violations, default_violations: by constraint, relative to its limit.
        changed: keys in which the two differ.
        experts: whether the network is a mixture of experts.
    """
    broken = _broken(violations)
    if broken:
        return False, broken
    reasons: list[str] = []
    rescued = False
    for name, theirs in default_violations.items():
        if theirs <= 0:
            continue
        better = 1 - (1 + violations.get(name, 0.0)) / (1 + theirs)
        error = constraint_threshold(name, changed, experts=experts)
        missed = f"The default breaks {CONSTRAINTS.get(name, name)} by {percent(theirs)}"
        if better > error:
            rescued = True
            reasons.append(f"{missed}, which it keeps.")
        else:
            reasons.append(f"{missed}; it keeps it, by less than forecast error.")
    errors = {name: margin_error(name, changed, experts=experts) for name in violations}
    reasons += _close_told(violations, errors)
    clear = next((gain for gain in gains if gain.verdict != "none"), None)
    reasons += [
        capitalised(f"{told_gain(gain)}: {gain.why or f'a {gain.verdict}'}.") for gain in gains
    ]
    return rescued or (clear is not None and clear.verdict == "gain"), tuple(reasons)


def close_to_limits(
    violations: Mapping[str, float], errors: Mapping[str, float]
) -> tuple[str, ...]:
    """Return the constraints that are kept by less than forecast error.

    Errors are relative to what was measured: a forecast f of an error e may stand for up to
    f / (1 - e), which is beyond the limit when f lies less than e below it.

    Args:
        violations: by constraint, relative to its limit.
        errors: of the forecast, by constraint; 0: it has none.
    """
    return tuple(
        name for name, value in violations.items() if value <= 0 and -value < errors.get(name, 0.0)
    )


def _close_told(violations: Mapping[str, float], errors: Mapping[str, float]) -> list[str]:
    return [
        f"It keeps {CONSTRAINTS.get(name, name)} by {percent(-violations[name])}, which forecast "
        f"error of {percent(errors[name])} can undo."
        for name in close_to_limits(violations, errors)
    ]


def fresh_seeds(seed: int, count: int) -> list[int]:
    """Return seeds that no trial of a search with `seed` has met."""
    state = np.random.SeedSequence([seed, _FRESH]).generate_state(count, np.uint64)
    return [int(value >> np.uint64(1)) for value in state]


def _broken(violations: Mapping[str, float]) -> tuple[str, ...]:
    return tuple(
        f"On held-out traffic it breaks {CONSTRAINTS.get(name, name)} by {percent(value)}."
        for name, value in violations.items()
        if value > 0
    )


def _mean(evaluations: Sequence[Evaluation]) -> dict[str, float]:
    told = [e.violations for e in evaluations if e.infeasible is None]
    return {name: fmean(v[name] for v in told if name in v) for name in (told[0] if told else ())}


def _lengths(evaluations: Sequence[Evaluation]) -> tuple[Length, ...]:
    return tuple(e.length for e in evaluations if e.length is not None)
