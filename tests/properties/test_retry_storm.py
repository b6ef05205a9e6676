"""A short outage, and whether the system comes back from it."""

import numpy as np

from twin.engine import simulate
from twin.engine.result import FINISHED
from twin.load import scenario_from
from twin.report.metrics import summarise

RATE, END_S = 8.0, 100.0
OUTAGE_S = 20.0, 35.0


def served(retry, **clients):
    """Return (share of the offered load that succeeded before and long after, result)."""
    scenario = scenario_from(
        {
            "schema_version": 1,
            "llm": "llama-3.1-8b",
            "gpu": "h100_sxm",
            "policy": {"max_num_seqs": 4, "max_model_len": 1024},
            "workload": {
                "kind": "synthetic",
                "arrivals": {"kind": "poisson", "rate": RATE},
                "duration_s": END_S,
                "prompt_tokens": 200,
                "output_tokens": 50,
            },
            "cluster": {
                "failures": {
                    "scheduled": [
                        {"at_s": OUTAGE_S[0], "replica": 0, "down_s": OUTAGE_S[1] - OUTAGE_S[0]}
                    ],
                    "in_flight": "fail",
                }
            },
            "clients": {
                "timeout_s": 2.0,
                "abort_on_disconnect": False,
                "retry": retry,
                **clients,
            },
        }
    )
    result = simulate(scenario)
    ends_s = result.requests.finish_s[result.requests.outcome == FINISHED]

    def goodput(start_s, end_s):
        return np.sum((ends_s >= start_s) & (ends_s < end_s)) / (RATE * (end_s - start_s))

    return goodput(5, OUTAGE_S[0]), goodput(80, END_S), result


IMMEDIATELY = {"kind": "fixed", "max_attempts": 20, "delay_s": 0.0}
BACKING_OFF = {"kind": "exponential", "max_attempts": 5, "delay_s": 1, "jitter": "full"}


def test_immediate_retries_keep_the_system_down():
    before, long_after, result = served(IMMEDIATELY)
    assert before > 0.85
    # The replica has been back for a minute and works for nobody.
    assert long_after < 0.1
    clients = summarise(result)["clients"]
    assert clients["attempts_per_request"] > 5
    assert clients["wasted_gpu_share"] > 0.7


def test_without_retries_it_comes_back():
    before, long_after, _ = served({"kind": "none"})
    assert before > 0.85
    assert long_after > 0.85


def test_a_budget_and_backoff_with_jitter_let_it_come_back():
    budget = {"max_tokens": 20, "token_ratio": 0.1}
    before, long_after, result = served(BACKING_OFF, budget=budget)
    assert before > 0.85
    assert long_after > 0.85
    assert summarise(result)["clients"]["attempts_per_request"] < 1.5


def test_adaptive_clients_let_it_come_back():
    before, long_after, result = served({**BACKING_OFF, "kind": "adaptive"})
    assert before > 0.85
    assert long_after > 0.85
    assert summarise(result)["clients"]["retries"]["timed_out"] > 0


def test_hearing_of_disconnects_alone_does_not_end_it():
    # First come, first served: whoever gets a place has waited almost as long as it would.
    _, long_after, _ = served(IMMEDIATELY, abort_on_disconnect=True)
    assert long_after < 0.1
