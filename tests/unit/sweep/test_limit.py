from tests.unit.sweep.points import MISSED, point, sweep
from twin.report.slo import Slo
from twin.sweep.judged import Judged
from twin.sweep.limit import load_limit
from twin.sweep.sweep import LoadSweep

UNSURE_GOOD = {"slo": Judged(True, False, True)}
UNSURE_BAD = {**MISSED, "slo": Judged(False, False, True)}


def test_between_the_last_that_holds_and_the_first_that_does_not():
    found = load_limit(
        sweep(point(10), point(13, **UNSURE_GOOD), point(15, **UNSURE_BAD), point(20, **MISSED))
    )
    assert (found.low, found.high, found.error_low, found.error_high) == (13, 15, 10, 20)
    assert found.sentence == (
        "Meets the SLO up to 13.0–15.0 req/s; within the forecast's error up to 10.0–20.0 req/s "
        "(P90 held-out error: TTFT ±21.5 %, n = 449)."
    )


def test_a_load_that_holds_beyond_one_that_does_not_is_no_limit():
    found = load_limit(sweep(point(10), point(13, **MISSED), point(15)))
    assert (found.low, found.high) == (10, 13)


def test_at_the_ends_of_the_range():
    through = load_limit(sweep(point(10), point(20)))
    assert (through.low, through.high, through.error_low, through.error_high) == (
        20,
        None,
        20,
        None,
    )
    assert through.sentence.startswith("Meets the SLO at every load up to 20.0 req/s; ")
    assert "holds up to 20.0 req/s at least" in through.sentence
    never = load_limit(sweep(point(10, **MISSED), point(20, **MISSED)))
    assert (never.low, never.high, never.error_low, never.error_high) == (None, 10, None, 10)
    assert never.sentence.startswith("Misses the SLO already at 10.0 req/s, the lowest load; ")


def test_without_an_slo_it_is_the_queue_that_ends():
    none = {"slo": Judged(), "slo_attainment": None}
    made = sweep(point(10, **none), point(20, queue_grows=True, **none), unit="clients")
    found = load_limit(LoadSweep(made.name, made.unit, Slo(), made.error, made.points))
    assert (found.low, found.high, found.error_low) == (10, 20, None)
    assert found.sentence == "Keeps up with the load up to 10–20 clients."
