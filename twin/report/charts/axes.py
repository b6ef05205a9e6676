"""Axes of bytes: powers of two, with binary units."""

import math
from typing import Any

from twin.report.charts.style import Spec

_UNITS = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, ',~r') + ' GiB' : "
    "datum.value >= 1048576 ? format(datum.value / 1048576, ',~r') + ' MiB' : "
    "datum.value >= 1024 ? format(datum.value / 1024, ',~r') + ' KiB' : "
    "format(datum.value, ',~r') + ' B'"
)


def bytes_axis(field: str, title: str, domain: tuple[float, float]) -> Spec:
    """Return a log2-scaled quantitative encoding of bytes with a tick every few octaves."""
    first, last = math.ceil(math.log2(domain[0])), math.floor(math.log2(domain[1]))
    step = max(1, math.ceil((last - first) / 10))
    scale: dict[str, Any] = {
        "type": "log",
        "base": 2,
        "domain": list(domain),
        "clamp": True,
        "nice": False,
    }
    return {
        "field": field,
        "type": "quantitative",
        "scale": scale,
        "axis": {
            "title": title,
            "values": [2.0**power for power in range(first, last + 1, step)],
            "labelExpr": _UNITS,
            "labelOverlap": True,
        },
    }


def bytes_domain(low: float, high: float) -> tuple[float, float]:
    """Return the domain from the power of two at or below `low` to the one at or above `high`."""
    below, above = math.floor(math.log2(low)), math.ceil(math.log2(high))
    return 2.0**below, 2.0 ** max(above, below + 1)
