import json
import time

import pytest

AppTest = pytest.importorskip("streamlit.testing.v1").AppTest

SCARCE = {
    "workload.num_requests": 300,
    "workload.arrivals.rate": 60,
    "policy.max_model_len": 16384,
    "policy.gpu_memory_utilization": 0.3,
}
ROOMY = {"workload.num_requests": 30}


def _page():
    import streamlit as st

    from app.pages.memory import memory_page
    from app.state.session import session
    from app.state.view import View

    visitor = session()
    visitor.view = View(st.session_state["scenario"], st.session_state["changes"])
    memory_page()


def _run(changes, tab=None, scenario="chat-h100"):
    at = AppTest.from_function(_page, default_timeout=60)
    at.session_state["scenario"], at.session_state["changes"] = scenario, changes
    if tab is not None:
        at.session_state["memory-tabs"] = tab
    at.run()
    return _until_answered(at)


def _until_answered(at, jobs=120):
    for _ in range(jobs):
        assert not at.exception
        if not at.session_state["servetwin"].jobs:
            return at
        time.sleep(0.5)
        at.run()
    raise AssertionError("no answer")


def _titles(at):
    return [json.loads(each.proto.spec)["title"] for each in at.get("vega_lite_chart")]


def _text(at):
    return " ".join(each.value for each in [*at.markdown, *at.caption, *at.info, *at.warning])


def test_scarce_blocks_open_with_what_preemptions_cost():
    at = _run(SCARCE)
    verdict = at.markdown[0].value
    assert verdict.startswith("#### :material/warning: KV peaks at ")
    assert " of 2,484 blocks; " in verdict
    assert verdict.endswith(" of recomputation.")
    assert _titles(at) == [
        "Block pool: what each part of it holds",
        "Blocks owned, cached and free",
    ]
    assert [metric.label for metric in at.metric] == [
        "KV peak", "Prefix-cache hits", "Preemptions", "Recomputation",
    ]  # fmt: skip
    assert "tokens were computed twice" in _text(at)


def test_a_knob_moves_the_verdict_and_the_charts():
    at = _run(SCARCE)
    before = [each.proto.data.data for each in at.get("vega_lite_chart")]
    at.session_state["changes"] = {**SCARCE, "policy.gpu_memory_utilization": 0.9}
    at.run()
    at = _until_answered(at)
    assert at.markdown[0].value.startswith("#### :material/check_circle: KV peaks at ")
    assert "no request is preempted" in at.markdown[0].value
    after = [each.proto.data.data for each in at.get("vega_lite_chart")]
    assert before != after


def test_hits_and_preemptions_have_charts_a_table_and_a_command():
    at = _run(SCARCE, "Hits and preemptions")
    assert _titles(at) == ["Prefix-cache hit rate", "Preemptions and what they cost"]
    table = at.dataframe[0].value
    assert table["Preemptions"].is_monotonic_decreasing
    assert at.code[-1].value.startswith("twin simulate chat-h100 --set ")
    assert at.code[-1].value.endswith(" --out DIR")
    assert "held-out error of mean TPOT" in _text(at)


def test_where_nothing_is_preempted_that_is_said():
    at = _run(ROOMY, "Hits and preemptions")
    assert _titles(at) == ["Prefix-cache hit rate"]
    assert "No request was preempted." in _text(at)
    assert not at.dataframe


def test_eviction_policies_are_compared_at_the_pools_size():
    at = _run({**SCARCE, **ROOMY}, "Eviction policies")
    assert _titles(at) == ["Hit rate over capacity", "Distance to Belady's optimum"]
    assert "**With this pool (2,484 blocks) lru hits " in _text(at)
    assert at.code[-1].value.startswith("twin cache TRACE.jsonl --block-size 16 --llm llama-3.1-8b")


def test_a_workload_that_shares_nothing_says_how_to_bring_one_that_does():
    at = _run({"workload.num_requests": 64}, "Eviction policies", "closed-loop-h100")
    assert not at.get("vega_lite_chart")
    assert "hash_ids" in at.info[-1].value
    assert at.code[-1].value == "twin cache TRACE.jsonl"


def test_an_engine_that_only_counts_says_so_and_shows_the_counts():
    at = _run({**ROOMY, "engine.name": "sglang"})
    assert _titles(at) == ["Blocks owned, cached and free"]
    assert "no map of blocks" in _text(at)


def test_what_does_not_go_together_is_one_calm_line():
    at = _run({"policy.gpu_memory_utilization": 0.3})
    assert "needs 8192 KV blocks" in at.warning[0].value
    assert not at.metric
