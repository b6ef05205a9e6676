"""Figures of clients who try again."""

import json

import numpy as np
import pytest

from twin.engine import simulate
from twin.engine.result import FINISHED, TIMED_OUT
from twin.engine.tabular import to_pandas
from twin.load import scenario_from
from twin.report.clients import client_rows, gpu_seconds
from twin.report.latencies import request_latencies
from twin.report.metrics import summarise

CLIENTS = {
    "ttft_timeout_s": 0.4,
    "retry": {"kind": "exponential", "max_attempts": 3, "delay_s": 0.2},
}


def simulated(clients=None, **changes):
    data = {
        "schema_version": 1,
        "llm": "llama-3.1-8b",
        "gpu": "h100_sxm",
        "policy": {"max_num_seqs": 4, "max_model_len": 1024},
        "workload": {
            "kind": "synthetic",
            "arrivals": {"kind": "poisson", "rate": 12},
            "num_requests": 120,
            "prompt_tokens": 200,
            "output_tokens": 50,
        },
        **changes,
    }
    return simulate(scenario_from(data if clients is None else {**data, "clients": clients}))


@pytest.fixture(scope="module")
def result():
    return simulated(CLIENTS)


def test_counts_add_up(result):
    requests, clients = result.requests, summarise(result)["clients"]
    assert clients["requests"] == 120
    assert clients["attempts"] == len(requests)
    assert clients["succeeded"] + clients["gave_up"] == 120
    assert clients["attempts"] == 120 + sum(clients["retries"].values())
    assert clients["retries"]["timed_out"] > 0
    # Every time-out is followed by another attempt or the last one of a request given up.
    assert clients["timed_out"] == clients["retries"]["timed_out"] + clients["gave_up"]
    json.dumps(summarise(result), allow_nan=False)


def test_e2e_counts_from_the_first_attempt(result):
    summary = summarise(result)
    assert summary["clients"]["e2e_s"]["p99"] > summary["e2e_s"]["p99"] + 0.4


def test_gpu_seconds_are_shared_out(result):
    shared = gpu_seconds(result)
    assert (shared >= 0).all()
    assert shared.sum() == pytest.approx(result.steps.busy_s.sum(), rel=0.02)
    never = np.isnan(result.requests.scheduled_s)
    assert never.any()
    assert (shared[never] == 0).all()


def test_only_what_nobody_got_is_wasted():
    calm = summarise(simulated({"timeout_s": 1000}))["clients"]
    assert calm["wasted_token_share"] == calm["wasted_gpu_share"] == 0
    assert calm["attempts_per_request"] == 1
    impatient = summarise(simulated({"timeout_s": 0.3, "abort_on_disconnect": False}))["clients"]
    assert impatient["succeeded"] < 120
    assert 0.5 < impatient["wasted_gpu_share"] <= 1


def test_a_token_after_the_client_has_gone_is_no_latency():
    late = simulated({"ttft_timeout_s": 0.2, "abort_on_disconnect": False})
    requests = late.requests
    unseen = (requests.outcome == TIMED_OUT) & np.isfinite(requests.first_token_s)
    assert unseen.any()
    ttft_s = request_latencies(requests).ttft_s
    assert np.isnan(ttft_s[unseen]).all()
    assert (ttft_s[requests.outcome == FINISHED] < 0.2).all()


def test_reports_tell_of_clients(result):
    rows = dict(client_rows(summarise(result)))
    assert "of 120 requests succeeded" in rows["Clients"]
    assert "timed out" in rows["Retries"]
    assert "GPU time" in rows["Wasted"]


def test_warm_up_is_that_of_requests_whatever_attempts_lie_between():
    loop = {
        "kind": "closed_loop",
        "concurrency": 12,
        "num_requests": 40,
        "warmup_requests": 12,
        "prompt_tokens": 200,
        "output_tokens": 50,
    }
    result = simulated(CLIENTS, workload=loop)
    firsts = result.requests.origin[result.requests.attempt == 1]
    assert (firsts > np.arange(firsts.size)).any()
    done = result.requests.outcome == FINISHED
    measured = np.isin(result.requests.origin, firsts[12:])
    e2e_s = (result.requests.finish_s - result.requests.arrival_s)[done & measured]
    assert summarise(result)["e2e_s"]["mean"] == pytest.approx(e2e_s.mean())


def test_without_clients_nothing_tells_of_them():
    result = simulated()
    assert "clients" not in result.inputs
    summary = summarise(result)
    assert "clients" not in summary
    assert client_rows(summary) == []
    requests, _ = to_pandas(result)
    assert not {"attempt", "origin", "served_by", "left_s"} & set(requests.columns)


def test_the_table_tells_of_attempts(result):
    requests, _ = to_pandas(result)
    assert {"attempt", "origin", "served_by", "left_s"} <= set(requests.columns)
    assert (requests["outcome"] == "timed_out").any()
    again = requests[requests["attempt"] > 1]
    names = requests["name"]
    assert (again["name"].to_numpy() == names[again["origin"]].to_numpy()).all()
