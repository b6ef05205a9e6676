"""Where labels of points go, so that none covers another."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from twin.report.charts.style import Spec

_CHARACTER, _LINE, _GAP = 6.6, 14.0, 8.0
"""Pixels of a character, of a line of 12 px text, and between a point and its label."""

PLACES: dict[str, Spec] = {
    "right": {"align": "left", "baseline": "middle", "dx": _GAP},
    "below": {"align": "center", "baseline": "top", "dy": _GAP},
    "left": {"align": "right", "baseline": "middle", "dx": -_GAP},
    "above": {"align": "center", "baseline": "bottom", "dy": -_GAP},
    "upper left": {"align": "right", "baseline": "bottom", "dx": -_GAP, "dy": -_GAP},
    "lower right": {"align": "left", "baseline": "top", "dx": _GAP, "dy": _GAP},
    "lower left": {"align": "right", "baseline": "top", "dx": -_GAP, "dy": _GAP},
}
"""Properties of a text mark by where it stands, in the order they are tried."""

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Spot:
    """A point in pixels, x to the right and y down, and what is to be written at it."""

    x: float
    y: float
    text: str


def places(
    spots: Sequence[Spot],
    width: float,
    height: float,
    lines: Sequence[tuple[float, float]] = (),
) -> list[str]:
    """Return where each label goes, of `PLACES`; empty: there is no room for it.

    Earlier ones are served first. Labels keep off each other, off every point and inside the
    chart; on a chart that is drawn wider they stay so.

    Args:
        spots: points and their labels.
        width, height: of the chart, pixels.
        lines: points along lines that labels should not cross.
    """
    taken = [_around(spot.x, spot.y, 5.0) for spot in spots]
    drawn = [_around(x, y, 2.0) for x, y in lines]
    found = []
    for index, spot in enumerate(spots):
        own = taken[index]
        others = [*drawn, *(box for box in taken if box is not own)]
        free = (
            place
            for place in PLACES
            if _inside(box := _box(spot, place), width, height)
            and not any(_overlap(box, other) for other in others)
        )
        place = next(free, "")
        found.append(place)
        if place:
            taken.append(_box(spot, place))
    return found


def share(value: float, domain: tuple[float, float]) -> float:
    """Return where a value lies in a domain on a logarithmic axis: 0 at its start, 1 at its end."""
    return math.log(value / domain[0]) / math.log(domain[1] / domain[0])


def along(one: tuple[float, float], other: tuple[float, float]) -> list[tuple[float, float]]:
    """Return points of a line, close enough that no label slips through."""
    steps = max(1, round(math.dist(one, other) / 4))
    return [
        (one[0] + (other[0] - one[0]) * i / steps, one[1] + (other[1] - one[1]) * i / steps)
        for i in range(steps + 1)
    ]


def _around(x: float, y: float, half: float) -> Box:
    return x - half, y - half, x + half, y + half


_AHEAD = {"left": 0.0, "center": 0.5, "right": 1.0, "top": 0.0, "middle": 0.5, "bottom": 1.0}
"""Share of a label that lies before its anchor, by alignment."""


def _box(spot: Spot, place: str) -> Box:
    look, width = PLACES[place], _CHARACTER * len(spot.text)
    left = spot.x + look.get("dx", 0.0) - _AHEAD[look["align"]] * width
    top = spot.y + look.get("dy", 0.0) - _AHEAD[look["baseline"]] * _LINE
    return left, top, left + width, top + _LINE


def _inside(box: Box, width: float, height: float) -> bool:
    return box[0] >= 0 and box[1] >= 0 and box[2] <= width and box[3] <= height


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
