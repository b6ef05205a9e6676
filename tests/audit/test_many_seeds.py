"""The property tests of engine and scheduler again, on many more examples.

`--hypothesis-profile=audit` (tests/conftest.py) says how many.
"""

from functools import wraps

import pytest

from tests.audit import records
from tests.properties.test_engine_runs import (
    test_a_turn_hits_the_blocks_of_the_turn_before,
    test_closed_loop_keeps_exactly_its_concurrency_in_flight,
    test_nothing_is_lost_and_time_only_goes_forward,
    test_same_seed_same_bytes,
)
from tests.properties.test_scheduler_invariants import (
    test_blocks_references_and_tokens_are_conserved,
    test_each_request_computes_exactly_its_tokens,
    test_every_request_that_fits_is_served,
    test_the_same_case_gives_the_same_decisions,
)

pytestmark = pytest.mark.audit

__all__ = [
    "test_a_turn_hits_the_blocks_of_the_turn_before",
    "test_blocks_references_and_tokens_are_conserved",
    "test_closed_loop_keeps_exactly_its_concurrency_in_flight",
    "test_each_request_computes_exactly_its_tokens",
    "test_every_request_that_fits_is_served",
    "test_nothing_is_lost_and_time_only_goes_forward",
    "test_same_seed_same_bytes",
    "test_the_same_case_gives_the_same_decisions",
]


@pytest.fixture(autouse=True)
def _examples_are_counted(request, monkeypatch):
    """Keep how many examples ran, once all have passed; a test that ran none fails."""
    handle, ran, broken = request.function.hypothesis, 0, False
    inner = handle.inner_test

    @wraps(inner)
    def counted(*args, **kwargs):
        nonlocal ran, broken
        ran += 1
        try:
            return inner(*args, **kwargs)
        except AssertionError:
            broken = True
            raise

    monkeypatch.setattr(handle, "inner_test", counted)
    yield
    assert ran > 0
    if not broken:
        records.write(f"examples-{request.function.__name__}", ran)
