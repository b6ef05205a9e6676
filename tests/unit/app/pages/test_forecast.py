"""The forecast page's logic: what is shown, what a knob changes, A/B, what cannot be simulated."""

from typing import Any

import pytest

pytest.importorskip("streamlit", reason="Streamlit is not installed")
from streamlit.testing.v1 import AppTest

from app.answers.setup import Setup


def _run() -> None:
    from app.pages.forecast import forecast_page
    from app.parts.frame import framed

    framed(forecast_page)


def _app(**parameters: str) -> AppTest:
    app = AppTest.from_function(_run, default_timeout=120)
    for key, value in parameters.items():
        app.query_params[key] = value
    return app.run()


def _cards(app: AppTest) -> dict[str, tuple[str, str]]:
    return {metric.label: (metric.value, metric.delta) for metric in app.metric}


def _specs(app: AppTest) -> list[str]:
    return [chart.proto.spec for chart in app.get("vega_lite_chart")]


def test_a_first_visit_needs_no_click() -> None:
    app = _app()
    assert not app.exception
    assert "Meets the SLO" in app.markdown[0].value
    assert set(_cards(app)) >= {"TTFT P50", "TTFT P99", "ITL P99", "Goodput", "KV peak"}
    assert "to" in _cards(app)["TTFT P99"][1], "a band where there is nothing to compare with"
    assert len(_specs(app)) == 2
    assert app.code[0].value == "twin simulate chat-h100"


def test_a_knob_changes_figures_charts_command_and_link() -> None:
    app = _app()
    before = _specs(app)
    app.selectbox(key="knob-seqs-0").set_value(32).run()
    assert not app.exception
    assert "Misses the SLO" in app.markdown[0].value
    assert _cards(app)["TTFT P99"][1].endswith("A, worse")
    assert _specs(app) != before
    assert "policy.max_num_seqs=32" in app.code[0].value
    assert app.query_params["seqs"] == "32"
    app.button(key="reset-knob-seqs-0").click().run()
    assert _specs(app) == before
    assert "seqs" not in app.query_params


def test_pinning_makes_the_view_the_baseline() -> None:
    app = _app(seqs="32")
    app.button(key="pin").click().run()
    assert not any("vs A" in delta for _, delta in _cards(app).values())
    assert app.query_params["a.seqs"] == "32"
    app.selectbox(key="knob-seqs-0").set_value(128).run()
    assert "better" in _cards(app)["TTFT P99"][1]


def test_what_does_not_fit_is_one_calm_line() -> None:
    app = _app()
    app.selectbox(key="knob-llm-0").set_value("llama-3.1-405b").run()
    assert not app.exception
    assert any("405" in warning.value or "fit" in warning.value for warning in app.warning)


def test_a_gpu_nobody_compared_has_no_band() -> None:
    app = _app(gpu="a100_sxm")
    assert _cards(app)["TTFT P99"][0] != "–"
    assert any("not known" in caption.value for caption in app.caption)
    assert any("Error unknown" in caption.value for caption in app.caption)


def test_a_price_makes_dollars_of_gpu_hours() -> None:
    app = _app(price="2.5")
    cards = _cards(app)
    assert cards["Cost per M tokens"][0].startswith("$")


@pytest.mark.parametrize("tab", ["Steps", "KV cache", "Queue"])
def test_tabs_draw_when_they_are_opened(tab: str) -> None:
    app = _app()
    before = len(_specs(app))
    app.session_state["forecast-tabs"] = tab
    app.run()
    assert not app.exception
    assert before == 2
    assert len(_specs(app)) == 1


def test_a_link_below_what_a_knob_offers_is_shown() -> None:
    app = _app(rate="0.00001", requests="1")
    assert not app.exception
    assert not app.warning
    assert app.number_input(key="knob-rate-0").value == 0.00001
    assert app.query_params["rate"] == "1e-05"


def test_a_link_cannot_put_pictures_or_links_on_the_page() -> None:
    app = _app(s="![x](https://example.com/x.png)")
    assert r"!\[x\](" in app.warning[0].value


def test_what_takes_longer_than_was_thought_goes_to_a_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from app.parts import results

    asked: list[str] = []
    simulated: list[str] = []
    from app.answers.forecast.forecast import forecast as real

    def forecast(setup: Setup, *rest: Any) -> Any:
        simulated.append(setup.digest())
        return real(setup, *rest)

    # The compiled engine tells of no progress before its end, and is that much quicker.
    monkeypatch.setattr("app.answers.forecast.forecast.quickest_engine", lambda: "interpreted")
    monkeypatch.setattr(results, "GIVE_UP_S", -1.0)
    monkeypatch.setattr(results, "forecast", forecast)
    monkeypatch.setattr(results, "answered", lambda *a, **k: asked.append(k["role"]))
    app = _app(seqs="24", requests="400")
    assert not app.exception
    assert asked[:1] == ["current"]
    tried = list(simulated)
    app.run()
    assert not app.exception
    assert asked.count("current") == 2
    assert simulated == tried, "what was given up once is not begun in the page again"


def test_a_large_trace_is_read_by_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.answers.forecast import effort
    from app.parts import results
    from app.state.uploads import take_trace
    from twin.workload import build

    app = _app()
    uploads = app.session_state["servetwin"].uploads
    head = b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
    trace = head + b"2024-05-10 00:00:01.000000,400,20\n"
    uploads.put("trace", take_trace(uploads.folder, "large.csv", trace))

    def reads(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the page reads the trace")

    monkeypatch.setattr(effort, "_LARGE_BYTES", 10)
    monkeypatch.setattr(build, "read_trace", reads)
    asked: list[str] = []
    monkeypatch.setattr(results, "answered", lambda *a, **k: asked.append(k["role"]))
    app.run()
    assert not app.exception
    assert asked == ["current"]
