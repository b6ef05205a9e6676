from dataclasses import replace

import pytest

from tests.unit.sweep.points import MISSED, point, sweep
from twin.report.slo import Slo
from twin.report.verdict import BOUND_WORDS
from twin.sweep.first_to_break import FULL, SATURATED, SOME, breaks, first_to_break

COMPUTE = {"compute": 0.85, "hbm": 0.15, "link": 0.0, "launch": 0.0}


def broken(**changes):
    return first_to_break(sweep(point(5), point(10), point(15, **changes)))


def test_nothing_breaks_in_the_range():
    found = first_to_break(sweep(point(10), point(20)))
    assert (found.resource, found.offered) == ("none", None)
    assert found.sentence == "Nothing breaks up to 20.0 req/s, 2.00 times the scenario's load."


def test_kv_capacity_by_its_preemptions():
    found = broken(preemptions=37, kv_peak=1.0)
    assert (found.resource, found.offered, found.factor) == ("kv", 15, 1.5)
    assert found.sentence == (
        "First to break at higher load: KV capacity (at 15.0 req/s usage peaks at 100 %, 37 "
        "preemptions)."
    )


def test_blocks_that_are_short_though_unused_are_reserved():
    some = {"waits": {"kv": 0.4}}
    assert "wait 40.0 % of the time for blocks)." in broken(kv_peak=0.95, **some).sentence
    reserved = (
        "peaks at 3.00 %, 0 preemptions, requests wait 40.0 % of the time for blocks that are"
    )
    assert reserved in broken(kv_peak=0.03, **some).sentence


@pytest.mark.parametrize(("reason", "resource"), [("kv", "kv"), ("max_num_seqs", "max_num_seqs")])
def test_waiting_for_a_resource_breaks_it_from_some_of_the_time_on(reason, resource):
    assert broken(waits={reason: SOME}).resource == resource
    assert broken(waits={reason: SOME * 0.99}).resource == "none"


def test_seats_are_named_where_requests_wait_longer_for_them_than_for_kv():
    found = broken(waits={"max_num_seqs": 0.4, "kv": 0.1}, preemptions=1)
    assert found.resource == "max_num_seqs"
    assert (
        "wait for one of 256 seats 40.0 % of the time, KV usage peaks at 50.0 %" in found.sentence
    )


@pytest.mark.parametrize("bound", ["compute", "hbm", "link", "launch"])
def test_slow_steps_are_what_binds_them(bound):
    found = broken(bound={**dict.fromkeys(COMPUTE, 0.1), bound: 0.7}, **MISSED)
    assert found.resource == bound
    assert found.sentence.startswith(
        "First to break at higher load: P99 TTFT 1.40 s is over 1 s at 15.0 req/s. What binds is "
    )
    assert f"{BOUND_WORDS[bound]}: 70.0 % of GPU time, " in found.sentence
    assert "GPU busy 90.0 %, KV peaks at 50.0 %." in found.sentence


def test_the_token_budget_needs_late_first_tokens_full_steps_and_room_in_compute():
    room = {**COMPUTE, "compute": SATURATED - 0.01}
    full = {"token_budget": FULL}
    assert broken(waits=full, bound=room, **MISSED).resource == "token_budget"
    assert broken(waits=full, bound=COMPUTE, **MISSED).resource == "compute"
    assert broken(waits={"token_budget": FULL * 0.9}, bound=room, **MISSED).resource == "compute"
    on_time = {**MISSED, "slo_ttft_s": 0.1, "slo_tpot_s": 0.1}
    assert broken(waits=full, bound=room, **on_time).resource == "compute"


def test_requests_that_are_lost_are_no_resource():
    lost = {**MISSED, "slo_ttft_s": 0.2, "lost": 12}
    found = first_to_break(sweep(point(5, **lost)))
    assert found.resource == "lost"
    assert found.sentence.startswith("Broken already at the lowest load: no resource (")
    assert "12 of 100 requests were refused or lost" in found.sentence


def test_where_it_shows_is_said():
    assert first_to_break(sweep(point(5), point(10, **MISSED))).sentence.startswith(
        "First to break, at the scenario's own load: "
    )
    assert first_to_break(sweep(point(5), point(8, **MISSED))).sentence.startswith(
        "First to break, below the scenario's own load: "
    )


def test_a_queue_that_grows_breaks_without_an_slo_too():
    assert breaks(point(10, queue_grows=True))
    assert not breaks(point(10))


def test_the_figure_that_breaks_comes_first_and_the_worst_of_two_before_the_other():
    slow = point(15, **{**MISSED, "slo_tpot_s": 0.09}, queue_grows=True)
    both = replace(sweep(point(5), slow), slo=Slo(ttft_s=1.0, tpot_s=0.03))
    assert (
        ": P99 TPOT 90.0 ms is over 30 ms, P99 TTFT 1.40 s is over 1 s and the queue grows at "
        "15.0 req/s. What binds is " in first_to_break(both).sentence
    )
    late = {**MISSED, "slo_ttft_s": 0.9, "slo_tpot_s": 0.0304}
    tpot = replace(both, points=(point(5), point(13.5, **late)))
    assert ": P99 TPOT 30.4 ms is over 30 ms at 13.5 req/s. What" in first_to_break(tpot).sentence


def test_limits_kept_by_different_requests_are_told_by_their_share():
    found = broken(**{**MISSED, "slo_ttft_s": 0.9, "slo_attainment": 0.985})
    assert ": 98.5 % of requests are within the SLO at 15.0 req/s. What" in found.sentence


def test_a_latency_that_breaks_comes_before_seats_and_kv():
    seats = broken(waits={"max_num_seqs": 0.4}, **MISSED).sentence
    assert "P99 TTFT 1.40 s is over 1 s at 15.0 req/s. What binds is max_num_seqs: req" in seats
    kv = broken(preemptions=1, **MISSED).sentence
    assert "What binds is KV capacity: usage peaks at 50.0 %, 1 preemption." in kv
