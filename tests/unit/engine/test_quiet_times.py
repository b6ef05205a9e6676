"""Instants in arrays are those of the plain recurrence, to the last bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from twin.engine.quiet_run import HostTimes, one_ahead, one_by_one

SECONDS = st.lists(st.floats(1e-5, 0.1), min_size=1, max_size=40)
SMALL = st.floats(0, 3e-3)


def plain(now, flying, seconds, host):
    """One step after another, `flying` being (end, seconds of processing) or None."""
    rows, end_s = [], 0.0
    if flying is not None:
        end_s, update_s = flying
    for duration_s in seconds:
        launched_s = now + host.schedule_s
        seen_end_s = end_s
        start_s = max(launched_s, end_s)
        end_s = start_s + duration_s
        if flying is None:
            seen_end_s, update_s = end_s, host.update_s
        out_s = max(launched_s, seen_end_s + host.wake_s) + update_s
        rows.append((now, start_s, end_s, out_s))
        now, update_s = out_s, host.update_s
    return [list(column) for column in zip(*rows, strict=True)]


def columns(times):
    return [c.tolist() for c in (times.call_s, times.start_s, times.end_s, times.seen_s)]


@given(SECONDS, st.floats(0, 1000), SMALL, SMALL, SMALL, st.floats(0, 0.05), SMALL)
def test_one_ahead(seconds, now, schedule_s, wake_s, update_s, busy_s, first_update_s):
    host, flying = HostTimes(schedule_s, wake_s, update_s), (now + busy_s, first_update_s)
    found = one_ahead(now, flying, np.array(seconds), host)
    assert columns(found) == plain(now, flying, seconds, host)


@given(SECONDS, st.floats(0, 1000), SMALL, SMALL, SMALL)
def test_one_by_one(seconds, now, schedule_s, wake_s, update_s):
    host = HostTimes(schedule_s, wake_s, update_s)
    found = one_by_one(now, np.array(seconds), host)
    assert columns(found) == plain(now, None, seconds, host)
