import json

import pytest

AppTest = pytest.importorskip("streamlit.testing.v1").AppTest


def _page():
    import streamlit as st

    from app.pages.hardware import hardware_page
    from app.state.session import session
    from app.state.view import View

    visitor = session()
    visitor.view = View(
        st.session_state.get("example", visitor.view.scenario), st.session_state["changes"]
    )
    hardware_page()


# A short run: what the page needs of the forecast is its batch.
_SHORT = {"workload.num_requests": 60, "policy.max_model_len": 8192}


def _run(tab=None, example="chat-h100", **changes):
    at = AppTest.from_function(_page, default_timeout=60)
    at.session_state["example"] = example
    at.session_state["changes"] = {
        **_SHORT,
        **{key.replace("__", "."): value for key, value in changes.items()},
    }
    if tab is not None:
        at.session_state["hardware-tabs"] = tab
    at.run()
    assert not at.exception
    return at


def _titles(at):
    return [json.loads(one.proto.spec)["title"] for one in at.get("vega_lite_chart")]


def _text(at):
    return " ".join(each.value for each in [*at.markdown, *at.caption, *at.info, *at.warning])


def test_it_opens_with_the_calibration_and_the_roofline_alone():
    at = _run()
    assert "measured points of 43 kernel tables under vllm 0.24.0" in at.markdown[0].value
    assert "Held-out error, median / P90 %: gemm" in at.markdown[1].value
    assert "Decode at batch" in _text(at)
    assert "is bound by HBM" in _text(at)
    assert _titles(at) == ["Roofline of NVIDIA H100 SXM 80 GB"]


def test_another_gpu_is_not_calibrated_and_says_how():
    at = _run(gpu="b200_sxm")
    assert "is not calibrated: published figures." in at.markdown[0].value
    assert at.code[0].value.splitlines()[0] == "twin-calibrate measure --out rows"
    assert "--set profile=mine.npz" in at.code[0].value
    assert _titles(at) == ["Roofline of NVIDIA B200 SXM 180 GB"]


def test_kernels_stand_beside_their_prices():
    at = _run("Kernels")
    assert _titles(at) == ["Modelled against measured", "Modelled over measured"]
    assert at.dataframe[0].value["kernels"].iloc[0] == "gemm"
    assert at.code[-1].value == "twin-calibrate holdout h100_sxm-vllm-0.24.0"
    assert "error unknown" in _text(_run("Kernels", gpu="b200_sxm"))


def test_memory_and_layout():
    at = _run("Memory")
    assert _titles(at) == ["Latency over footprint: NVIDIA H100 SXM 80 GB"]
    assert "constants were measured on" in _text(at)
    assert list(at.dataframe[0].value)[:3] == ["constant", "value", "interval"]
    at = _run("KV layout")
    assert _titles(at) == ["Where KV bytes go"]
    assert at.code[-1].value.startswith("twin memory chat-h100")


def test_collectives_of_a_kind():
    at = _run("Collectives", example="llama70b-fp8-tp4-h100")
    assert _titles(at) == ["All-reduce on NVIDIA H100 SXM 80 GB"]
    assert "(tp 4) wait for: all-reduce of" in _text(at)
    at.session_state["hardware-collective"] = "all_gather"
    at.run()
    assert _titles(at) == ["All-gather on NVIDIA H100 SXM 80 GB"]


def test_every_gpu_is_in_the_table():
    at = _run("Calibration")
    found = at.dataframe[0].value
    assert set(found["state"]) == {"kernels measured", "layers measured", "not calibrated"}
    assert _titles(at) == []


def test_what_does_not_fit_is_one_calm_line():
    at = _run(llm="llama-3.1-70b")
    assert len(at.warning) == 1
    assert not at.get("vega_lite_chart")
