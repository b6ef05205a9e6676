import json
import time

import pytest

AppTest = pytest.importorskip("streamlit.testing.v1").AppTest


def _page():
    from app.pages.capacity import capacity_page
    from app.state.session import session
    from app.state.view import View

    visitor = session()
    import streamlit as st

    if "changes" in st.session_state:
        visitor.view = View(visitor.view.scenario, st.session_state["changes"])
    capacity_page()


def _run(tab=None, **changes):
    at = AppTest.from_function(_page, default_timeout=60)
    at.session_state["changes"] = {key.replace("__", "."): v for key, v in changes.items()}
    if tab is not None:
        at.session_state["capacity-tabs"] = tab
    at.run()
    assert not at.exception
    return at


def _specs(at):
    return [json.loads(each.proto.spec) for each in at.get("vega_lite_chart")]


def _text(at):
    shown = " ".join(each.value for each in [*at.markdown, *at.caption, *at.info, *at.warning])
    return shown.replace("\\", "")  # what others wrote is escaped


def _until_answered(at, jobs=60):
    for _ in range(jobs):
        if not at.session_state["servetwin"].jobs:
            return at
        time.sleep(0.5)
        at.run()
    raise AssertionError("no answer")


def test_it_opens_with_the_verdict_and_both_charts():
    at = _run()
    assert at.markdown[0].value.startswith(
        "#### :material/check_circle: Fits on 1×H100 with 53.9 GiB for KV: 53 requests at 8k"
    )
    titles = [spec["title"] for spec in _specs(at)]
    assert titles == [
        "Memory of one GPU by tensor parallelism",
        "Requests that fit at once, by context",
    ]
    assert at.code[0].value == "twin capacity --model llama-3.1-8b --gpu h100_sxm"
    assert [metric.label for metric in at.metric][1] == "KV cache"
    # The first tab alone was worked out.
    assert "Blocks of 16 tokens lose" in _text(at)
    assert not at.session_state["servetwin"].jobs


def test_a_knob_moves_the_charts_and_the_cards_tell_the_change():
    at = _run()
    before = _specs(at)
    at.session_state["changes"] = {"policy.kv_cache_dtype": "fp8"}
    at.run()
    assert _specs(at)[0] == before[0]  # bytes of the budget are the same
    tokens = at.metric[2]
    assert tokens.delta == "+100 % vs A, better"
    assert at.code[0].value.endswith("--kv-cache-dtype fp8")


def test_what_does_not_fit_keeps_its_chart_and_the_rest_is_calm():
    at = _run(tab="KV dtype", llm="llama-3.3-70b")
    assert "Does not fit on 1×H100" in at.markdown[0].value
    assert len(_specs(at)) == 1
    assert "No request fits" in _text(at)
    at = _until_answered(at)
    assert "does not fit on 1 x h100_sxm" in _text(at)


def test_parts_that_do_not_go_together_are_one_line():
    at = _run(parallelism__tp=3)
    assert not at.metric
    assert "tp" in at.warning[0].value


def test_kv_dtype_is_answered_in_one_sentence_with_its_command():
    small = {"workload.num_requests": 40, "policy.kv_cache_dtype": "fp8"}
    at = _run(tab="KV dtype", **small)
    assert at.selectbox[0].value == "fp8"
    at = _until_answered(at)
    assert "FP8 KV: " in _text(at)
    assert "What it does to answers is not simulated" in _text(at)
    command = at.code[-1].value
    assert command == "twin kv-dtype chat-h100 --set workload.num_requests=40 --dtype fp8"


def test_how_many_gpus_asks_only_when_its_tab_is_open():
    at = _run(tab="How many GPUs?", workload__num_requests=60, slo__ttft_s=1.0)
    assert list(at.session_state["servetwin"].jobs) == ["size"]
    at = _until_answered(at)
    assert "H100" in _text(at)
    assert " for P99 TTFT 1 s and TPOT 30 ms" in _text(at)
    assert at.code[-1].value.startswith("twin size chat-h100 --set ")


def test_how_many_gpus_needs_an_objective():
    at = _run(tab="How many GPUs?", slo__ttft_s=None, slo__tpot_s=None)
    assert "no SLO to size for" in at.info[0].value
    assert not at.session_state["servetwin"].jobs


def test_a_cancelled_sizing_can_be_asked_again():
    at = _run(tab="How many GPUs?", workload__num_requests=3000)
    job = at.session_state["servetwin"].jobs["size"]
    at.button(key="cancel-size").click().run()
    assert not at.exception
    assert not job.running
    assert "Cancelled" in _text(at)
