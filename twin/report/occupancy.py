"""How long each scheduled step's state lasts, and averages over time made from that."""

from dataclasses import dataclass

import numpy as np

from twin.engine.result import FINISHED, REJECTED, UNFINISHED, Floats, Ints, SimulationResult


@dataclass(frozen=True, slots=True)
class Span:
    """The stretch of time rates refer to: first arrival to last finish, or to the horizon."""

    start_s: float
    end_s: float

    @property
    def seconds(self) -> float:
        """Length; 0 for an empty run."""
        return max(0.0, self.end_s - self.start_s)


def serving_span(result: SimulationResult) -> Span:
    """Return first arrival to last finish; to the run's end while anything is unfinished."""
    requests = result.requests
    if not len(requests):
        return Span(0.0, 0.0)
    done = requests.finish_s[requests.outcome == FINISHED]
    cut_off = not done.size or bool((requests.outcome == UNFINISHED).any())
    end = float(result.simulated_s) if cut_off else float(done.max())
    return Span(float(requests.arrival_s.min()), end)


def hold_seconds(result: SimulationResult, span: Span) -> Floats:
    """Return, for each step, how long the state it reports lasts, clipped to `span`.

    A state lasts from its scheduling to the next one on the same replica, or until that replica
    has no request left: idle time belongs to no step.
    """
    steps = result.steps
    hold = np.zeros(len(steps))
    for replica in range(result.replicas):
        rows = np.flatnonzero(steps.replica == replica) if result.replicas > 1 else slice(None)
        start = steps.scheduled_s[rows]
        if not start.size:
            continue
        end = np.append(start[1:], steps.end_s[rows][-1:])
        end = np.minimum(end, _idle_after(result, replica, start, steps.end_s[rows]))
        hold[rows] = np.clip(end, span.start_s, span.end_s) - np.clip(
            start, span.start_s, span.end_s
        )
    return np.maximum(hold, 0.0)


def _idle_after(result: SimulationResult, replica: int, start: Floats, end: Floats) -> Floats:
    """When the replica next has no request, for each step (the step's own end at the least)."""
    requests = result.requests
    here = (requests.replica == replica) & (requests.outcome != REJECTED)
    arrival = requests.arrival_s[here]
    order = np.argsort(arrival, kind="stable")
    arrival = arrival[order]
    if not arrival.size:
        return end
    finish = requests.left_s[here]
    leave = np.where(np.isnan(finish), result.simulated_s, finish)[order]
    latest = np.maximum.accumulate(leave)
    # Where the next arrival comes after everyone has left, a busy stretch ends.
    breaks = np.flatnonzero(np.append(arrival[1:] > latest[:-1], True))
    stretch = np.searchsorted(latest[breaks], start, side="right")
    after: Floats = np.maximum(latest[breaks][np.minimum(stretch, breaks.size - 1)], end)
    return after


def time_mean(values: Ints | Floats, hold: Floats, over_s: float) -> float | None:
    """Return the mean over time of a state, idle time counting as 0.

    `over_s`: the seconds to take it over, those of all replicas together.
    """
    if over_s <= 0:
        return None
    return float(np.dot(values, hold)) / over_s


def binned_mean(
    result: SimulationResult, values: Ints | Floats, hold: Floats, edges: Floats
) -> dict[int, Floats]:
    """Return, for each replica, the time mean of a state in each bin between `edges`.

    Exact: differences, at the edges, of the running integral of a piecewise constant function.
    """
    steps = result.steps
    means = {}
    for replica in range(result.replicas):
        rows = np.flatnonzero(steps.replica == replica)
        begin = steps.scheduled_s[rows]
        area = integral_in_bins(values[rows], begin, begin + hold[rows], edges)
        means[replica] = area / np.diff(edges)
    return means


def integral_in_bins(values: Ints | Floats, begin: Floats, end: Floats, edges: Floats) -> Floats:
    """Return the integral over each bin of `values`, each holding from `begin` to `end`.

    The stretches are in order of time. Shapes: (n,) three times and (bins + 1,) give (bins,).
    """
    if not begin.size:
        return np.zeros(edges.size - 1)
    if (begin[1:] < end[:-1]).any():
        return _of_overlapping(values, begin, end, edges)
    knots = np.column_stack((begin, end)).ravel()
    total = np.cumsum(values * (end - begin))
    area = np.column_stack((np.concatenate(([0.0], total[:-1])), total)).ravel()
    return np.diff(np.interp(edges, np.maximum.accumulate(knots), area))


def _of_overlapping(values: Ints | Floats, begin: Floats, end: Floats, edges: Floats) -> Floats:
    """The same of stretches that overlap: the sum of all values at a time, integrated."""
    times = np.concatenate((begin, end))
    order = np.argsort(times, kind="stable")
    knots = times[order]
    heights = np.cumsum(np.concatenate((values, -values))[order])
    area = np.concatenate(([0.0], np.cumsum(heights[:-1] * np.diff(knots))))
    return np.diff(np.interp(edges, knots, area))
