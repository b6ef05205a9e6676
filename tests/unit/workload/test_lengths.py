from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from twin.workload.lengths import Count, Length, LognormalLength, draw, draw_pairs, mean_of
from twin.workload.trace import Trace

ADAPTER: TypeAdapter[Length] = TypeAdapter(Length)


def parse(value: Any) -> Any:
    return ADAPTER.validate_python(value)


def drawn(value: Any, count: int = 50_000) -> Any:
    return draw(parse(value), count, np.random.default_rng(3))


def test_bare_number_is_fixed() -> None:
    assert parse(7) == parse({"kind": "fixed", "value": 7})
    assert set(drawn(7).tolist()) == {7}


def test_uniform_reaches_both_ends() -> None:
    assert set(drawn({"kind": "uniform", "low": 3, "high": 6}).tolist()) == {3, 4, 5, 6}
    assert set(drawn({"kind": "uniform", "low": 3, "high": 3}).tolist()) == {3}


def test_lognormal_moments() -> None:
    found = drawn({"kind": "lognormal", "mean": 1000, "std": 500}, 200_000)
    assert found.mean() == pytest.approx(1000, rel=0.02)
    assert found.std() == pytest.approx(500, rel=0.03)
    found = drawn({"kind": "lognormal", "median": 300, "sigma": 1.2}, 200_000)
    assert np.median(found) == pytest.approx(300, rel=0.02)
    assert np.log(found).std() == pytest.approx(1.2, rel=0.02)


def test_lognormal_is_clipped() -> None:
    found = drawn({"kind": "lognormal", "mean": 100, "std": 500, "min": 50, "max": 200})
    assert (found.min(), found.max()) == (50, 200)
    assert drawn({"kind": "lognormal", "median": 1, "sigma": 10}).min() == 1


def test_lognormal_at_its_extremes_stays_within_bounds() -> None:
    found = drawn({"kind": "lognormal", "median": 1e7, "sigma": 10})
    assert found.max() == 10_000_000
    assert found.min() >= 1


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (0, "greater than 0"),
        (-1, "greater than 0"),
        (10**8, "less than or equal to 10000000"),
        (1.5, "fractional"),
        (float("nan"), "finite"),
        ({"kind": "uniform", "low": 5, "high": 4}, "low 5 is above high 4"),
        ({"kind": "lognormal", "mean": 5}, "give mean and std, or median and sigma"),
        ({"kind": "lognormal", "mean": 5, "std": 1, "median": 5}, "give mean and std, or"),
        ({"kind": "lognormal", "mean": 1e300, "std": 1}, "less than or equal"),
        ({"kind": "lognormal", "mean": 5, "std": 1, "min": 9, "max": 8}, "min 9 is above max 8"),
        ({"kind": "empirical", "path": ""}, "at least 1 character"),
        ({"kind": "normal", "mean": 5}, "does not match any of the expected tags"),
        ({"kind": "fixed", "value": 5, "more": 1}, "Extra inputs"),
    ],
)
def test_bad_lengths(value: Any, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        parse(value)


def test_counts_are_never_empirical() -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(Count).validate_python({"kind": "empirical", "path": "t.csv"})


def test_mean_of() -> None:
    assert mean_of(parse(7)) == 7
    assert mean_of(parse({"kind": "uniform", "low": 1, "high": 4})) == 2.5
    assert mean_of(parse({"kind": "lognormal", "mean": 40, "std": 9})) == pytest.approx(40)


def test_empirical_pairs_come_from_one_row() -> None:
    trace = Trace(
        path="t",
        format="azure_llm_csv",
        finish="stop",
        arrival_s=np.zeros(3),
        prompt_tokens=np.array([10, 20, 30]),
        output_tokens=np.array([1, 2, 3]),
        rows=np.arange(3),
    )
    both = parse({"kind": "empirical", "path": "t"})
    rngs = (np.random.default_rng(0), np.random.default_rng(1))
    prompt, output = draw_pairs((both, both), 1000, rngs, {("t", None): trace})
    assert (prompt == 10 * output).all()
    assert set(output.tolist()) == {1, 2, 3}
    crossed = parse({"kind": "empirical", "path": "t", "column": "output_tokens"})
    prompt, output = draw_pairs((crossed, parse(5)), 1000, rngs, {("t", None): trace})
    assert set(prompt.tolist()) == {1, 2, 3}
    assert set(output.tolist()) == {5}


def test_a_spread_beyond_reckoning_is_refused():
    with pytest.raises(ValidationError, match="times mean"):
        LognormalLength(kind="lognormal", mean=1e-300, std=1e7)
