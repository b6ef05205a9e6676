"""Instants of a run of decode steps: the recurrences of `twin.engine.replica`, many at a time.

Sums are taken in the order in which the plain loop takes them, so every instant is the same to the
last bit (`numpy.add.accumulate` adds one after another).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HostTimes:
    """Seconds of the host in each step of a batch: launch, wake-up, processing."""

    schedule_s: float
    wake_s: float
    update_s: float


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Instants of n iterations of an engine core's loop, each of shape (n,).

    Attributes:
        call_s: when it decides a step.
        start_s, end_s: of that step on the GPU.
        seen_s: when the tokens it waits for leave the engine; the next iteration begins.
    """

    call_s: Floats
    start_s: Floats
    end_s: Floats
    seen_s: Floats

    def __len__(self) -> int:
        return int(self.call_s.size)


def one_by_one(now_s: float, seconds: Floats, host: HostTimes) -> RunTimes:
    """Return the instants if each step is decided when the one before it is processed."""
    steps = seconds.size
    terms = np.empty(1 + 4 * steps)
    terms[0] = now_s
    terms[1::4], terms[3::4], terms[4::4] = host.schedule_s, host.wake_s, host.update_s
    terms[2::4] = seconds
    sums = np.add.accumulate(terms)
    seen = sums[4::4]
    return RunTimes(_after(now_s, seen), sums[1::4], sums[2::4], seen)


def one_ahead(
    now_s: float, flying: tuple[float, float], seconds: Floats, host: HostTimes
) -> RunTimes:
    """Return the instants if a step is in flight whenever one is decided.

    Args:
        now_s: of the first call.
        flying: (end, seconds of processing) of the step in flight then.
        seconds: of each step on the GPU.
        host: of each step of the run.
    """
    busy_until_s, update_s = flying
    ends = np.empty(seconds.size + 1)
    ends[0], ends[1:] = busy_until_s, seconds
    np.add.accumulate(ends, out=ends)
    starts, ends = ends[:-1], ends[1:]
    out = starts + host.wake_s if host.wake_s else starts
    seen = out + host.update_s
    seen[0] = out[0] + update_s
    calls = _after(now_s, seen)
    if _keeps_up(now_s, (busy_until_s, float(seen[0])), seconds, host):
        return RunTimes(calls, starts, ends, seen)
    if (calls + host.schedule_s <= starts).all():  # the GPU never waits for the host
        return RunTimes(calls, starts, ends, seen)
    return _in_turn(now_s, flying, seconds, host)


def _keeps_up(now_s: float, first: tuple[float, float], seconds: Floats, host: HostTimes) -> bool:
    """Whether it is plain to see that the GPU never waits for the host.

    If the shortest step outlasts the host by more than rounding, so do all.
    """
    busy_until_s, seen_s = first
    launched_s = seen_s + host.schedule_s
    if now_s + host.schedule_s > busy_until_s or launched_s > busy_until_s + float(seconds[0]):
        return False
    host_s = host.wake_s + host.update_s + host.schedule_s
    return host_s + 1e-6 < float(seconds.min())


def _in_turn(
    now_s: float, flying: tuple[float, float], seconds: Floats, host: HostTimes
) -> RunTimes:
    rows = []
    end_s, update_s = flying
    for duration_s in seconds.tolist():
        call_s, out_s = now_s, end_s + host.wake_s
        launched_s = now_s + host.schedule_s
        start_s = max(launched_s, end_s)
        end_s = start_s + duration_s
        now_s = max(launched_s, out_s) + update_s
        update_s = host.update_s
        rows.append((call_s, start_s, end_s, now_s))
    calls, starts, ends, seen = np.array(rows).T.copy()
    return RunTimes(calls, starts, ends, seen)


def _after(now_s: float, seen_s: Floats) -> Floats:
    """Each call comes when the iteration before it is over."""
    calls = np.empty_like(seen_s)
    calls[0], calls[1:] = now_s, seen_s[:-1]
    return calls
