"""A chart on a page: drawn in the visitor's theme, with its words and its downloads."""

import csv
import io
from functools import partial
from typing import Any

import streamlit as st

from twin.report.charts.chart import Chart
from twin.report.charts.style import Spec, Theme, themed


def theme() -> Theme:
    """Return the visitor's theme."""
    return "dark" if st.context.theme.type == "dark" else "light"


def figure(chart: Chart, *, key: str, note: str = "") -> None:
    """Draw a chart, its caption and what to download it as.

    Args:
        chart: what to draw; one without a spec shows its sentence alone.
        key: unique on the page.
        note: added to the caption, such as where a band comes from.
    """
    if not chart.spec:
        st.markdown(f"**{chart.title}**")
        st.info(chart.alt)
        return
    st.vega_lite_chart(_on_page(chart.spec), theme=None, key=key, alt=chart.alt, width="stretch")
    caption = " ".join(filter(None, (chart.caption, note)))
    if caption:
        st.caption(caption)
    with st.popover("Save", help=f"Download {chart.title}", width="content", type="tertiary"):
        _downloads(chart, key)


def _downloads(chart: Chart, key: str) -> None:
    for kind, mime, make in (
        ("csv", "text/csv", _csv),
        ("svg", "image/svg+xml", _svg),
        ("png", "image/png", _png),
    ):
        st.download_button(
            kind.upper(),
            data=partial(make, chart),
            file_name=f"{chart.name}.{kind}",
            mime=mime,
            key=f"save-{key}-{kind}",
            on_click="ignore",
        )


def _on_page(bare: Spec) -> Spec:
    """Dress a spec for the page: the visitor's theme, the width there is; `alt` describes it."""
    spec = {key: value for key, value in themed(bare, theme()).items() if key != "description"}
    if "vconcat" in spec:
        views = [{**view, "width": "container"} for view in spec["vconcat"]]
        return {**spec, "vconcat": views, "autosize": {"type": "fit-x", "contains": "padding"}}
    return {**spec, "width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}


def csv_text(rows: list[dict[str, Any]]) -> str:
    """Return rows as CSV; text that a spreadsheet would take for a formula is quoted as text."""
    out = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _harmless(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _harmless(value: Any) -> Any:
    risky = isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if risky else value


def _csv(chart: Chart) -> bytes:
    return csv_text(chart.rows).encode()


def _svg(chart: Chart) -> bytes:
    import vl_convert

    return str(vl_convert.vegalite_to_svg(themed(chart.spec))).encode()


def _png(chart: Chart) -> bytes:
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(themed(chart.spec), scale=2))
