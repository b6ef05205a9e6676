import numpy as np
import pytest

from twin.report.latencies import cdf, percentile_of, percentiles


def test_percentiles_are_numpys_linear_ones_of_the_finite_values():
    values = np.array([3.0, np.nan, 1.0, 2.0, 4.0])
    assert percentiles(values) == {
        "mean": 2.5,
        "p50": 2.5,
        "p90": pytest.approx(3.7),
        "p95": pytest.approx(3.85),
        "p99": pytest.approx(3.97),
    }
    assert percentile_of(np.array([np.nan]), 50) is None


def test_cdf_gives_quantiles_from_the_minimum_to_where_the_tail_has_ten_values():
    values = np.arange(1000.0)
    x, p = cdf(values, 50)
    assert x.size == 50
    assert (p[0], x[0]) == (0.0, 0.0)
    assert p[-1] == pytest.approx(0.99)
    assert x == pytest.approx(np.quantile(values, p))


def test_cdf_points_are_even_in_the_tail_scale():
    _, p = cdf(np.arange(10_000.0), 31)
    assert np.diff(-np.log10(1 - p)) == pytest.approx(3 / 30)


@pytest.mark.parametrize("size", [1, 2, 15, 20])
def test_cdf_of_few_values_reaches_the_median(size):
    x, p = cdf(np.arange(float(size)), 5)
    assert p[-1] == pytest.approx(0.5)
    assert x[-1] == pytest.approx((size - 1) / 2)


def test_cdf_of_nothing_is_empty():
    x, p = cdf(np.array([np.nan]), 5)
    assert x.size == p.size == 0
