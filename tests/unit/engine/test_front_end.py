"""The server process: which tokens make a response, and when the client sees them."""

import numpy as np
import pytest

from twin.engine.front_end import FrontEnd
from twin.errors import InputError


@pytest.mark.parametrize(
    ("interval", "responses"),
    [
        (1, [1, 2, 3, 4, 5, 6, 7]),
        (3, [1, 3, 6, 7]),
        (7, [1, 7]),
        (100, [1, 7]),
        (2, [1, 2, 4, 6, 7]),
    ],
)
def test_first_every_interval_and_last(interval: int, responses: list[int]) -> None:
    front_end = FrontEnd(0.0, interval)
    assert [n for n in range(1, 8) if front_end.responds(n, last=n == 7)] == responses


def test_an_idle_server_adds_one_event() -> None:
    front_end = FrontEnd(0.25)
    assert front_end.seen_s(1.0, 1, last=False) == 1.25
    assert front_end.seen_s(2.0, 2, last=False) == 2.25


def test_tokens_of_one_step_queue_in_order() -> None:
    front_end = FrontEnd(0.25)
    assert [front_end.seen_s(1.0, 5, last=False) for _ in range(4)] == [1.25, 1.5, 1.75, 2.0]
    assert front_end.seen_s(1.9, 6, last=False) == 2.25  # waits for the fourth
    assert front_end.seen_s(9.0, 6, last=False) == 9.25


def test_throughput_saturates_at_one_over_the_event_time() -> None:
    # 128 requests every 10 ms are 12,800 tokens/s; 0.11 ms an event lets 9,091 through.
    for interval, rate in ((1, 1 / 0.11e-3), (10, 12_800)):
        front_end = FrontEnd(0.11e-3, interval)
        steps = 400
        for step in range(1, steps + 1):
            for _ in range(128):
                front_end.seen_s(step * 0.01, step, last=step == steps)
        assert steps * 128 / front_end.free_s == pytest.approx(rate, rel=0.03)


def test_held_back_tokens_come_with_the_next_response() -> None:
    front_end = FrontEnd(0.5, 3)
    tokens = [
        (1.0, 0, 1, False),
        (1.0, 1, 2, False),
        (2.0, 0, 2, False),
        (2.0, 1, 3, False),
        (3.0, 0, 3, False),
        (3.0, 1, 4, False),
        (4.0, 0, 4, True),
    ]
    assert front_end.seen_times_s(tokens) == [1.5, 2.5, 3.5, 2.5, 3.5, None, 4.5]


def test_never_before_the_engine_and_never_out_of_order() -> None:
    rng = np.random.default_rng(3)
    left = np.cumsum(rng.exponential(1e-3, 2000))
    front_end = FrontEnd(0.9e-3)
    seen = [front_end.seen_s(float(at), 5, last=False) for at in left]
    assert all(s is not None and s >= at + 0.9e-3 for s, at in zip(seen, left, strict=True))
    assert np.all(np.diff(np.array(seen, dtype=float)) >= 0.9e-3 - 1e-12)


def test_no_cost_no_delay() -> None:
    front_end = FrontEnd(0.0)
    assert [front_end.seen_s(1.0, 1, last=False) for _ in range(3)] == [1.0] * 3


@pytest.mark.parametrize(
    ("event_s", "interval", "words"),
    [(-1.0, 1, "event_s is -1"), (float("nan"), 1, "event_s is nan"), (0.1, 0, "at least 1")],
)
def test_values_no_server_has(event_s: float, interval: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        FrontEnd(event_s, interval)
