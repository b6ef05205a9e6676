from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from twin.errors import InputError
from twin.workload import arrivals as module
from twin.workload.arrivals import Arrivals, arrival_times

ADAPTER: TypeAdapter[Arrivals] = TypeAdapter(Arrivals)


def times(
    arrivals: dict[str, Any], count: int | None = None, duration_s: float | None = None
) -> list[float]:
    spec = ADAPTER.validate_python(arrivals)
    found: list[float] = arrival_times(spec, count, duration_s, np.random.default_rng(1)).tolist()
    return found


def test_constant() -> None:
    assert times({"kind": "constant", "rate": 2}, count=3) == [0.5, 1, 1.5]
    assert times({"kind": "constant", "rate": 2}, duration_s=1.5) == [0.5, 1, 1.5]
    assert len(times({"kind": "constant", "rate": 0.1}, duration_s=30)) == 3
    assert times({"kind": "constant", "rate": 2}, count=2, duration_s=1.5) == [0.5, 1]


@pytest.mark.parametrize("burstiness", [0.1, 0.5, 1, 4])
def test_gamma_gaps_have_the_moments_of_the_burstiness(burstiness: float) -> None:
    gaps_s = np.diff(times({"kind": "gamma", "rate": 20, "burstiness": burstiness}, count=100_000))
    assert gaps_s.mean() == pytest.approx(1 / 20, rel=0.05)
    variation = gaps_s.std() / gaps_s.mean()
    assert variation == pytest.approx(burstiness**-0.5, rel=0.05)


def test_poisson_is_gamma_of_burstiness_one() -> None:
    gamma = {"kind": "gamma", "rate": 3, "burstiness": 1}
    assert times({"kind": "poisson", "rate": 3}, count=50) == times(gamma, count=50)


@pytest.mark.parametrize("kind", ["poisson", "gamma"])
def test_a_duration_ends_random_arrivals(kind: str) -> None:
    arrivals = {"kind": kind, "rate": 50}
    found = times(arrivals, duration_s=200)
    assert found[-1] <= 200
    assert len(found) == pytest.approx(10_000, rel=0.05)
    assert times(arrivals, count=7, duration_s=200) == pytest.approx(found[:7])


def test_a_duration_reached_only_after_more_draws() -> None:
    found = times({"kind": "gamma", "rate": 0.001, "burstiness": 0.01}, duration_s=2e6)
    assert found == sorted(found)
    assert found[-1] <= 2e6


def test_stages_by_the_clock() -> None:
    stages = [
        {"rate": 2, "duration_s": 2, "arrivals": "constant"},
        {"rate": 0, "duration_s": 10},
        {"rate": 1, "duration_s": 3, "arrivals": "constant"},
    ]
    assert times({"kind": "stages", "stages": stages}) == [0.5, 1, 1.5, 2, 13, 14, 15]
    assert times({"kind": "stages", "stages": stages}, count=5) == [0.5, 1, 1.5, 2, 13]


def test_random_stages_keep_to_their_time_and_rate() -> None:
    stages = [{"rate": 100, "duration_s": 50}, {"rate": 10, "duration_s": 500}]
    found = np.array(times({"kind": "stages", "stages": stages}))
    early = int((found <= 50).sum())
    assert early == pytest.approx(5000, rel=0.1)
    assert found.size - early == pytest.approx(5000, rel=0.1)
    assert found.max() <= 550


def test_nothing_arrives() -> None:
    with pytest.raises(InputError, match="nothing arrives"):
        times({"kind": "constant", "rate": 0.1}, duration_s=1)


def test_too_many_at_the_limit_and_past_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_REQUESTS", 100)
    poisson = {"kind": "poisson", "rate": 100}
    assert len(times(poisson, count=100)) == 100
    with pytest.raises(InputError, match="more than 100 arrivals; lower rate or duration_s"):
        times(poisson, duration_s=2)
