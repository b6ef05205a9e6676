import numpy as np
import pytest

from tests.unit.report.by_hand import hand_result
from tests.unit.report.synthetic import toy_result
from twin.report.occupancy import (
    Span,
    binned_mean,
    hold_seconds,
    integral_in_bins,
    serving_span,
)


def test_a_state_lasts_until_the_next_step_or_until_its_replica_is_empty():
    result = hand_result()
    hold = hold_seconds(result, serving_span(result))
    # Step 0 of replica 0 ends at 0.9, yet its request only leaves at 1.5; step 1 is replica 1's.
    assert hold == pytest.approx([1.4, 0.2, 0.5, 1.0])


def test_the_span_clips_what_lasts_beyond_it():
    assert hold_seconds(hand_result(), Span(0.2, 3.5)) == pytest.approx([1.3, 0.2, 0.5, 0.5])


def test_integral_in_bins_splits_a_stretch_over_bins():
    edges = np.array([0.0, 1.0, 2.0, 3.0])
    area = integral_in_bins(np.array([2.0, 4.0]), np.array([0.5, 2.5]), np.array([1.5, 3.0]), edges)
    assert area == pytest.approx([1.0, 1.0, 2.0])
    empty = np.empty(0)
    assert integral_in_bins(empty, empty, empty, edges) == pytest.approx([0, 0, 0])


def test_binned_means_average_to_the_time_mean():
    result = toy_result()
    span = serving_span(result)
    hold = hold_seconds(result, span)
    edges = np.linspace(span.start_s, span.end_s, 38)
    bins = binned_mean(result, result.steps.used_blocks, hold, edges)
    exact = float(np.dot(result.steps.used_blocks, hold)) / (span.seconds * 2)
    assert np.mean([bins[0].mean(), bins[1].mean()]) == pytest.approx(exact)


def test_stretches_that_overlap_add_up():
    edges = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    values, begin, end = np.array([2.0, 4.0, 1.0]), np.array([0.5, 1.0, 1.5]), np.array([2, 2.5, 4])
    area = integral_in_bins(values, begin, end, edges)
    assert area == pytest.approx([1.0, 2.0 + 4.0 + 0.5, 2.0 + 1.0, 1.0])
    alone = [
        integral_in_bins(*(part[i : i + 1] for part in (values, begin, end)), edges)
        for i in range(3)
    ]
    assert area == pytest.approx(sum(alone))
