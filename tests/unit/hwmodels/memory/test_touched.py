"""Pages, lines and sectors touched: closed forms against counting every byte range."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.memory.access import spread
from hwmodels.memory.touched import Segments, expected_touched, floor_sum, touched

SEGMENTS = st.builds(
    lambda count, segment, gap, start: Segments(count, segment + gap, segment, start),
    st.integers(0, 200),
    st.integers(1, 300),
    st.integers(0, 700),
    st.integers(0, 2000),
)


def starts_of(ranges):
    return ranges.start + ranges.stride * np.arange(ranges.count, dtype=np.int64)


def counted(ranges, unit, chosen=None):
    starts = starts_of(ranges) if chosen is None else starts_of(ranges)[chosen]
    return np.unique(spread(starts, ranges.segment, unit) // unit).size if starts.size else 0


@given(st.integers(0, 60), st.integers(1, 50), st.integers(0, 200), st.integers(0, 200))
def test_floor_sum_is_the_plain_sum(count, divisor, step, start):
    expected = sum((step * i + start) // divisor for i in range(count))
    assert floor_sum(count, divisor, step, start) == expected


@given(SEGMENTS, st.integers(1, 400))
def test_touched_units_are_exact(ranges, unit):
    assert touched(ranges, unit) == counted(ranges, unit)


@given(SEGMENTS.filter(lambda r: r.count > 0), st.integers(1, 400))
def test_all_of_them_chosen_is_all_of_them(ranges, unit):
    assert expected_touched(ranges, ranges.count, unit) == pytest.approx(touched(ranges, unit))


@given(SEGMENTS.filter(lambda r: r.count > 0), st.integers(1, 400))
def test_one_of_them_is_the_mean_of_each_alone(ranges, unit):
    alone = [counted(ranges, unit, [i]) for i in range(ranges.count)]
    assert expected_touched(ranges, 1, unit) == pytest.approx(np.mean(alone))


@given(SEGMENTS.filter(lambda r: r.count > 2), st.integers(1, 400), st.integers(1, 199))
def test_more_chosen_touch_no_fewer(ranges, unit, chosen):
    few, more = (expected_touched(ranges, n, unit) for n in (chosen / 2, chosen))
    assert few <= more + 1e-9


@pytest.mark.parametrize(
    ("stride", "segment", "start"), [(700, 300, 55), (64, 64, 0), (5000, 90, 7)]
)
def test_a_random_choice_touches_what_is_expected(stride, segment, start):
    """4,000 draws of 60 of 300: within 1 %."""
    rng = np.random.default_rng(1)
    ranges = Segments(300, stride, segment, start)
    draws = [counted(ranges, 512, rng.choice(300, 60, replace=False)) for _ in range(4000)]
    assert expected_touched(ranges, 60, 512) == pytest.approx(np.mean(draws), rel=0.01)


@pytest.mark.parametrize(("stride", "segment"), [(0, 0), (4, 5), (4, 0)])
def test_ranges_that_overlap_are_refused(stride, segment):
    with pytest.raises(ValueError, match="segment"):
        Segments(2, stride, segment)
