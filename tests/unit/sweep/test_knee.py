from tests.unit.sweep.points import point, sweep
from twin.sweep.knee import FOLLOWS, Knee, knee


def test_goodput_that_follows_has_no_knee():
    assert knee(sweep(point(1), point(2), point(4))) == Knee(4, None)


def test_the_knee_lies_between_the_last_gain_of_half_and_the_next():
    just = 2 + FOLLOWS * 2
    assert knee(sweep(point(1), point(2), point(4, just))) == Knee(4, None)
    assert knee(sweep(point(1), point(2), point(4, just - 0.01))) == Knee(2, 4)


def test_a_later_recovery_does_not_move_it():
    assert knee(sweep(point(1), point(2), point(4, 2.1), point(8, 8))) == Knee(2, 4)


def test_loads_close_together_are_compared_over_a_stretch():
    # From 2.0 to 2.1 chance takes goodput away; from 1 to 2.1 it follows.
    assert knee(sweep(point(1), point(2), point(2.1, 1.95), point(3))) == Knee(3, None)


def test_nothing_to_follow_at_the_lowest_load():
    assert knee(sweep(point(1, queue_grows=True), point(2))) == Knee(None, 1)
    assert knee(sweep(point(1, 0.0), point(2))) == Knee(None, 1)


def test_clients_are_measured_by_what_the_first_ones_bring():
    follows = sweep(point(8, 2.0), point(16, 3.5), point(32, 6.0), unit="clients")
    assert knee(follows) == Knee(32, None)
    bends = sweep(point(8, 2.0), point(16, 3.5), point(32, 4.0), unit="clients")
    assert knee(bends) == Knee(16, 32)
