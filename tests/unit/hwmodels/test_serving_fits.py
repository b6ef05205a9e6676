"""The committed fit reaches the costs that a simulation uses."""

from hwmodels.host import corrections_for, host_costs_for, prior_host_costs
from hwmodels.serving_fits import SERVING_FITS


def test_every_group_that_was_fitted_on_has_a_fit_without_it():
    assert set(SERVING_FITS["left_out"]) == set(SERVING_FITS["groups"])
    for values in every_left_out():
        assert set(values) == set(SERVING_FITS["values"])


def test_dense_networks_have_no_say_in_experts_nor_the_other_way_round():
    kinds = {frozenset(left) for left in SERVING_FITS["left_out"].values()}
    assert len(kinds) == 2
    assert not frozenset.intersection(*kinds)


def every_left_out():
    """The numbers that each group's absence gives, those it had no say in included."""
    return [{**SERVING_FITS["values"], **left} for left in SERVING_FITS["left_out"].values()]


def test_a_group_left_out_changes_what_it_had_a_say_in():
    values = SERVING_FITS["values"]
    assert all(left != values for left in every_left_out())


def test_host_costs_are_the_priors_with_what_was_fitted():
    for engine in ("vllm", "sglang", "trtllm"):
        fitted, prior = host_costs_for(engine), prior_host_costs(engine)
        assert fitted.fitted
        assert not prior.fitted
        assert fitted.gap_s == SERVING_FITS["values"][f"{engine}.gap_s"] > 0
        assert fitted.schedule_s == prior.schedule_s
        assert SERVING_FITS["fitted_on"] in fitted.source


def test_only_tensorrt_llms_tables_hold_what_products_hide():
    assert corrections_for("trtllm").product_overlap_s > 0
    assert corrections_for("vllm").product_overlap_s == 0
