from dataclasses import replace

from tests.unit.report.by_hand import hand_result
from tests.unit.report.synthetic import empty_result
from twin.report.metrics import summarise
from twin.report.verdict import bound_sentence, verdict


def test_meeting_the_slo_names_percentile_figure_and_limit():
    text = verdict(summarise(hand_result(), {"ttft_s": 1.0, "percentile": 50}))
    assert text == (
        "Meets the SLO: P50 TTFT 500 ms (SLO 1 s); 1 of 5 requests rejected, 1 of 5 requests "
        "unfinished at the end. 60.0 % of requests met it."
    )


def test_missing_it_through_slowness_puts_the_latency_first():
    text = verdict(summarise(hand_result(), {"tpot_s": 0.05, "percentile": 50}))
    assert text.startswith("Misses the SLO: P50 TPOT 175 ms (SLO 50 ms)")


def test_missing_it_through_rejections_puts_them_first():
    text = verdict(summarise(hand_result(), {"ttft_s": 2.0, "percentile": 90}))
    assert text.startswith("Misses the SLO: 1 of 5 requests rejected")


def test_without_an_objective_there_is_no_verdict():
    text = verdict(summarise(hand_result()))
    assert text == "No SLO is set: P99 TTFT 990 ms, P99 ITL 250 ms."


def test_an_empty_run_says_so():
    assert verdict(summarise(empty_result())).startswith("No request reached the engine")
    assert bound_sentence(summarise(empty_result())) == "No step ran."


def test_a_run_that_records_no_steps_does_not_deny_them():
    unrecorded = replace(empty_result(), stride=0, steps_taken=7)
    assert bound_sentence(summarise(unrecorded)) == "Steps were not recorded."


def test_what_binds_comes_largest_first():
    text = bound_sentence(summarise(hand_result()))
    assert text == (
        "Steps are bound by tensor-core compute for 47.8 % of GPU time "
        "(the rest: memory bandwidth (HBM) 43.5 %, kernel launches (CPU) 8.70 %)."
    )
