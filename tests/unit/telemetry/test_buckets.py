import itertools

import pytest

from twin.telemetry import buckets


@pytest.mark.parametrize(
    ("bounds", "first", "last", "number"),
    [
        (buckets.REQUEST_LATENCY, 0.3, 7680.0, 21),
        (buckets.TIME_TO_FIRST_TOKEN, 0.001, 2560.0, 22),
        (buckets.INTER_TOKEN_LATENCY, 0.01, 80.0, 19),
        (buckets.ITERATION_TOKENS, 1.0, 16384.0, 13),
        (buckets.NUM_PREEMPTIONS, 1.0, 20.0, 7),
    ],
)
def test_bounds_increase_and_have_the_extent_of_vllms(bounds, first, last, number):
    assert all(low < high for low, high in itertools.pairwise(bounds))
    assert (bounds[0], bounds[-1], len(bounds)) == (first, last, number)


@pytest.mark.parametrize(
    ("limit", "bounds"),
    [(1, (1,)), (4, (1, 2)), (5, (1, 2, 5)), (100, (1, 2, 5, 10, 20, 50, 100))],
)
def test_request_token_bounds_stop_at_the_context_limit(limit, bounds):
    assert buckets.request_tokens(limit) == bounds
