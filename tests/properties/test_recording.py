"""A run that keeps some steps and gaps keeps exactly those that a whole one has there."""

import numpy as np
import pytest

from tests.properties.random_scenarios import random_scenario
from tests.properties.test_engines_agree import FAST
from twin.engine import simulate
from twin.load import scenario_from

STRIDES = (2, 7, 50, 0)
SEEDS = range(1000, 1024)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_kept(seed):
    stride, data = STRIDES[seed % len(STRIDES)], random_scenario(seed)
    whole = simulate(scenario_from(data), engine="reference")
    data["recording"] = {"kind": "sampled", "every": stride} if stride else "none"
    gaps = None
    for engine in ("reference", *FAST):
        part = simulate(scenario_from(data), engine=engine)
        assert part.steps_taken == len(whole.steps)
        np.testing.assert_array_equal(part.requests.finish_s, whole.requests.finish_s)
        _compare_steps(part.steps, whole, stride)
        if whole.replicas == 1 and stride:
            np.testing.assert_array_equal(part.itl_s, whole.itl_s[::stride])
        gaps = part.itl_s if gaps is None else gaps
        np.testing.assert_array_equal(part.itl_s, gaps)
        assert (gaps.size > 0) == (stride > 0 and whole.itl_s.size > 0)


def _compare_steps(steps, whole, stride):
    cores = [np.flatnonzero(whole.steps.replica == core) for core in range(whole.replicas)]
    kept = np.sort(np.concatenate([rows[::stride] if stride else rows[:0] for rows in cores]))
    for column in type(steps).__dataclass_fields__:
        expected = getattr(whole.steps, column)[kept]
        np.testing.assert_array_equal(getattr(steps, column), expected, err_msg=column)


def test_a_report_of_samples_is_close_to_that_of_all():
    from twin.report.metrics import summarise

    data = random_scenario(1001)
    data["cluster"] = {"replicas": 1}
    data.pop("clients", None)
    data["workload"] = {
        "kind": "synthetic",
        "num_requests": 150,
        "arrivals": {"kind": "poisson", "rate": 8},
        "prompt_tokens": 300,
        "output_tokens": 100,
    }
    data.pop("horizon_s", None)
    data["engine"], data["llm"], data["gpu"] = {"name": "vllm"}, "llama-3.1-8b", "h100_sxm"
    data.pop("parallelism", None)
    data["policy"] = {}
    whole = summarise(simulate(scenario_from(data)))
    data["recording"] = {"kind": "sampled", "every": 10}
    part = summarise(simulate(scenario_from(data)))
    assert part["steps"] == whole["steps"]
    assert part["gpu_busy_share"] == pytest.approx(whole["gpu_busy_share"], rel=1e-6)
    assert part["itl_s"]["p50"] == pytest.approx(whole["itl_s"]["p50"], rel=0.05)
    assert part["running"]["mean"] == pytest.approx(whole["running"]["mean"], rel=0.05)
    data["recording"] = "none"
    none = summarise(simulate(scenario_from(data)))
    assert none["kv_cache_usage"] == {"mean": None, "max": None}
    assert none["itl_s"] is None or none["itl_s"]["p50"] is None
    assert none["ttft_s"] == whole["ttft_s"]
