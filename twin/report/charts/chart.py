"""`Chart`: a spec, its data as rows, and a sentence for those who do not see it."""

from dataclasses import dataclass
from typing import Any

from twin.report.charts.style import HEIGHT, SCHEMA, WIDTH, Spec

MAX_MARKS = 2_000
"""Most marks a chart draws."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart without its theme (see `style.themed`).

    Attributes:
        name: short key, unique in a report.
        title: what it shows.
        spec: the Vega-Lite spec, data inside; empty when there is nothing to draw.
        rows: the same data as tidy rows.
        alt: one sentence for those who do not see it.
        caption: what was binned or left out; may be empty.
    """

    name: str
    title: str
    spec: Spec
    rows: list[Row]
    alt: str
    caption: str = ""


def unit_chart(title: str, alt: str, rows: list[Row], body: Spec) -> Spec:
    """Return a full spec of one view with its data, size, title and description."""
    return {
        "$schema": SCHEMA,
        "title": title,
        "description": alt,
        "width": WIDTH,
        "height": HEIGHT,
        "data": {"values": rows},
        **body,
    }


def rounded(value: float, digits: int = 5) -> float:
    """Return `value` to a few significant digits: what a chart can show, and smaller files."""
    return float(f"{value:.{digits}g}")
