"""What a gain has to exceed."""

import pytest

from twin.forecast_error import DENSE, DIFFERENCE_ERRORS, FORECAST_ERRORS, difference_error
from twin.search.judging.error_of_difference import (
    PRICING,
    constraint_threshold,
    same_prices,
    threshold,
)
from twin.search.objectives import OBJECTIVES
from twin.search.space import SPACE

SCHEDULING = ("policy.max_num_seqs", "policy.max_num_batched_tokens", "cluster.replicas")


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("experts", [False, True])
def test_every_objective_has_one(name, experts):
    same = threshold(name, SCHEDULING, experts=experts)
    other = threshold(name, ("parallelism.tp",), experts=experts)
    assert 0 < same < other < 1


def test_first_tokens_have_their_own():
    error = DIFFERENCE_ERRORS[DENSE]
    assert threshold("p99_ttft_s", SCHEDULING, experts=False) == error.ttft_p90
    assert threshold("usd_per_mtok", SCHEDULING, experts=False) == error.tpot_p90
    assert constraint_threshold("ttft_s", SCHEDULING, experts=False) == error.ttft_p90
    assert constraint_threshold("unserved", SCHEDULING, experts=False) == 0


def test_other_prices_are_independent_forecasts():
    found = difference_error(experts=False, same_prices=False)
    assert found.tpot_p90 == pytest.approx(2**0.5 * FORECAST_ERRORS[DENSE].tpot_p90)


def test_pricing_keys_are_knobs_or_parts():
    """A renamed knob would otherwise fall silently among those that change no price."""
    keys = {knob.key for knob in SPACE}
    parts = {key.rpartition(".")[0] for key in keys} | {"gpu", "engine"}
    assert {key for key in PRICING if key not in keys} <= parts


def test_a_key_stands_for_all_below_it():
    assert not same_prices(["parallelism.tp"])
    assert not same_prices(["policy.kv_cache_dtype", "policy.max_num_seqs"])
    assert same_prices(["policy.max_num_seqs", "policy.watermark"])
    assert same_prices([])
