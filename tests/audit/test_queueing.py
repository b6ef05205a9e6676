"""Served against offered load, and queue waits against the Pollaczek-Khinchine formula.

With max_num_seqs 1 a replica is a single server. Poisson arrivals of rate r and service times D
then wait W = r E[D^2] / (2 (1 - r E[D])) on average; fixed lengths make it M/D/1. Service times
come from lone requests, so nothing here is fitted.
"""

import numpy as np
import pytest

from hwmodels.host import host_costs_for
from tests.audit import records
from twin.engine import simulate
from twin.load import scenario_from
from twin.report.metrics import summarise

pytestmark = pytest.mark.audit

SEEDS = range(12)
REQUESTS = 4000
WARM_UP = 400
"""Requests left out: the queue starts empty."""
PROMPT_TOKENS = 200
T_999_11 = 4.437
"""Student's t, 11 degrees of freedom, two-sided 0.1 %."""
HOST = host_costs_for("vllm", "0.33.0")
API_S = HOST.api_s


def run(rate, output_tokens, seed=0, num_requests=REQUESTS, **policy):
    scenario = scenario_from(
        {
            "schema_version": 1,
            "name": "queueing",
            "llm": "llama-3.1-8b",
            "gpu": "h100_sxm",
            "policy": {
                "max_model_len": 1024,
                "max_num_seqs": 1,
                "enable_prefix_caching": False,
                "async_scheduling": False,
                **policy,
            },
            "workload": {
                "kind": "synthetic",
                "arrivals": {"kind": "poisson", "rate": rate},
                "num_requests": num_requests,
                "prompt_tokens": PROMPT_TOKENS,
                "output_tokens": output_tokens,
            },
            "seed": seed,
        }
    )
    return simulate(scenario)


def service_s(output_tokens):
    """How long one request alone holds the server, seconds."""
    table = run(1.0, output_tokens, num_requests=1).requests
    return float(table.finish_s[0] - table.scheduled_s[0])


def mean_wait_s(table):
    waits = table.scheduled_s - table.arrival_s - API_S
    assert np.all(waits > -1e-9)
    return float(waits[WARM_UP:].mean())


def check_wait(name, rate, output_tokens, expected_s):
    waits = np.array([mean_wait_s(run(rate, output_tokens, seed).requests) for seed in SEEDS])
    error_s = float(waits.std(ddof=1)) / len(SEEDS) ** 0.5
    records.write(
        f"queue-{name}",
        {
            "requests": REQUESTS * len(SEEDS),
            "expected_s": expected_s,
            "mean_s": float(waits.mean()),
            "standard_error_s": error_s,
        },
    )
    assert error_s < 0.05 * expected_s  # else agreement would mean little
    assert abs(waits.mean() - expected_s) < T_999_11 * error_s


@pytest.mark.parametrize("utilisation", [0.3, 0.6, 0.8])
def test_fixed_lengths_wait_as_in_md1(utilisation):
    duration_s = service_s(2)
    rate = utilisation / duration_s
    expected_s = utilisation * duration_s / (2 * (1 - utilisation))
    check_wait(f"MD1-{utilisation}", rate, 2, expected_s)


@pytest.mark.parametrize("utilisation", [0.3, 0.8])
def test_every_wait_follows_lindleys_recursion(utilisation):
    """W' = max(0, W + D - gap), request by request, on the arrivals of the run itself.

    A request that comes while the engine core reports the last answer's end (an empty step)
    waits for that too, so a wait may be longer, never by more than such a step.
    """
    duration_s = service_s(2)
    table = run(utilisation / duration_s, 2, num_requests=1000).requests
    waits, wait_s = table.scheduled_s - table.arrival_s - API_S, 0.0
    expected = [0.0]
    for gap_s in np.diff(table.arrival_s):
        wait_s = max(0.0, wait_s + duration_s - float(gap_s))
        expected.append(wait_s)
    extra_s = waits - np.array(expected)
    assert extra_s.min() > -1e-9
    assert extra_s.max() <= HOST.schedule_s + HOST.update_s + 1e-9


@pytest.mark.parametrize("utilisation", [0.6])
def test_varied_lengths_wait_as_in_mg1(utilisation):
    low, high = 1, 6
    durations = np.array([service_s(length) for length in range(low, high + 1)])
    rate = utilisation / float(durations.mean())
    expected_s = rate * float((durations**2).mean()) / (2 * (1 - utilisation))
    lengths = {"kind": "uniform", "low": low, "high": high}
    check_wait(f"MG1-{utilisation}", rate, lengths, expected_s)


@pytest.mark.parametrize("utilisation", [0.4, 0.9])
def test_below_capacity_all_offered_load_is_served(utilisation):
    duration_s = service_s(2)
    rate = utilisation / duration_s
    for seed in range(4):
        result = run(rate, 2, seed)
        figures, table = summarise(result), result.requests
        offered = REQUESTS / float(table.arrival_s.max() - table.arrival_s.min())
        assert figures["finished"] == REQUESTS
        # The last requests end after the last arrival: a few service times among thousands.
        assert figures["requests_per_s"] == pytest.approx(offered, rel=0.01)
        assert figures["requests_per_s"] <= offered
        held_s = float((table.finish_s - table.scheduled_s).sum())
        assert held_s == pytest.approx(REQUESTS * duration_s, rel=1e-6)


@pytest.mark.parametrize("overload", [1.2, 3.0])
def test_above_capacity_the_server_is_never_idle(overload):
    duration_s = service_s(2)
    figures = summarise(run(overload / duration_s, 2, num_requests=2000))
    assert figures["finished"] == 2000
    # Overload 1.2 has short idle spells at the start, before the queue builds up.
    assert figures["requests_per_s"] == pytest.approx(1 / duration_s, rel=0.01)
    assert figures["requests_per_s"] <= 1 / duration_s


def test_littles_law_holds_for_a_batching_server():
    """Mean number in the engine = arrival rate times mean time in it, time in the API apart."""
    result = run(25.0, 120, num_requests=3000, max_num_seqs=24, async_scheduling=None)
    figures, table = summarise(result), result.requests
    span_s = float(table.finish_s.max() - table.arrival_s.min())
    in_engine_s = float((table.finish_s - table.arrival_s - API_S).sum())
    present = figures["running"]["mean"] + figures["waiting"]["mean"]
    records.write("little", {"counted": present, "expected": in_engine_s / span_s})
    # Numbers are sampled when a step is scheduled; a request comes and goes between two.
    assert present == pytest.approx(in_engine_s / span_s, rel=0.05)
