"""Forecast: what TTFT, ITL, throughput and the KV cache will do, against a pinned baseline."""

import streamlit as st

from app.answers.forecast.figures import figures_of
from app.answers.forecast.forecast import Forecast
from app.parts.baseline import baseline_bar
from app.parts.cards import cards
from app.parts.figure import figure
from app.parts.load import load_tab
from app.parts.results import calmly, forecast_of
from app.parts.verdict import verdict_line
from app.state.session import Session, session
from twin.report.charts.latency import latency_curves


def forecast_page() -> None:
    """Draw the page."""
    visitor = session()
    calmly(lambda: _draw(visitor))


def _draw(visitor: Session) -> None:
    current = forecast_of(visitor, visitor.setup())
    compared = visitor.baseline_setup().digest() != visitor.setup().digest()
    before = forecast_of(visitor, visitor.baseline_setup(), role="baseline") if compared else None
    if current is None:
        current = visitor.last.get("forecast")
        if current is None:
            return
        st.caption("Updating: the figures below are those of the last setup.")
    visitor.last["forecast"] = current
    verdict_line(current)
    cards(figures_of(current, before, visitor.view.usd_per_gpu_hour), compared=before is not None)
    baseline_bar(visitor, compared=compared)
    latency, load, steps, kv, queue = st.tabs(
        ["Latency", "Load", "Steps", "KV cache", "Queue"], key="forecast-tabs", on_change="rerun"
    )
    with latency:
        if latency.open:
            _latency(current, before)
    with load:
        if load.open:
            load_tab(visitor)
    for tab, name in ((steps, "steps"), (kv, "kv"), (queue, "queue")):
        with tab:
            if tab.open:
                figure(current.charts[name], key=f"chart-{name}")
    if not visitor.view.changes and visitor.baseline is None:
        st.caption("Try: double the load in the sidebar, and open the Load tab: what breaks first?")


def _latency(current: Forecast, before: Forecast | None) -> None:
    slo = current.summary["slo"] or {}
    sure = current.certainty
    for place, (key, title, limit_key, error, what) in zip(
        st.columns(2),
        (
            ("ttft_s", "TTFT", "ttft_s_limit", sure.ttft, "ttft"),
            ("itl_s", "ITL", "tpot_s_limit", sure.tpot, "tpot"),
        ),
        strict=True,
    ):
        curves = {"B: this setup": current.curves[key]}
        if before is not None:
            curves = {"A: baseline": before.curves[key], **curves}
        name = "SLO" if key == "ttft_s" else "TPOT SLO"
        chart = latency_curves(
            key, title, curves, slo_s=slo.get(limit_key), slo_name=name, error=error
        )
        with place:
            note = sure.caption(what)
            if key == "itl_s" and slo.get(limit_key) is not None:
                note += " The limit holds for each answer's mean gap, not for single ones."
            figure(chart, key=f"chart-{key}", note=note)
