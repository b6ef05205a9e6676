"""Cards: a figure with its change against the baseline, in words as well as in colour."""

from typing import Literal

import streamlit as st

from app.answers.forecast.figures import Figure
from twin.report.numbers import MISSING, change, significant

_MANY = 10
"""From so many times the baseline on a percentage says less than the factor."""


def cards(rows: list[Figure], *, compared: bool, columns: int = 4) -> None:
    """Draw cards in rows of so many, fewer where the window is narrow.

    Args:
        rows: what to draw.
        compared: whether there is a baseline to tell of.
        columns: cards of a row, at most.
    """
    for start in range(0, len(rows), columns):
        with st.container(horizontal=True):
            for card in rows[start : start + columns]:
                _card(card, compared)


def _card(card: Figure, compared: bool) -> None:
    about = card.about or None
    if not compared:
        band = card.band or None
        st.metric(
            card.title,
            card.value,
            band,
            delta_color="off",
            delta_arrow="off",
            help=about,
            border=True,
        )
        return
    words, tone = verdict_of(card)
    st.metric(
        card.title,
        card.value,
        words,
        delta_color=_colour(card, tone),
        delta_arrow="off" if tone == "same" else _arrow(card),
        help=about,
        border=True,
    )


def verdict_of(card: Figure) -> tuple[str, str]:
    """Return the change in words and its tone: better, worse or same."""
    if card.now is None or card.before is None:
        return f"{MISSING} vs A", "same"
    if card.before == 0:
        return ("±0 % vs A", "same") if card.now == 0 else ("A has none", "same")
    ratio = card.now / card.before
    moved = change(100 * (ratio - 1)) if ratio < _MANY else f"{significant(ratio, 2)} times"
    words = f"{moved} vs A" if ratio < _MANY else f"{moved} A"
    if ratio == 1:
        return words, "same"
    if card.error is None:
        return f"{moved}, error unknown", "same"
    if ratio > 0 and max(ratio, 1 / ratio) <= 1 + card.error:
        return f"{moved}, within error", "same"
    if card.better == "neither":
        return words, "same"
    tone = "better" if (ratio < 1) == (card.better == "lower") else "worse"
    return f"{words}, {tone}", tone


def _colour(card: Figure, tone: str) -> Literal["normal", "inverse", "off"]:
    """Better is blue and worse vermillion, whichever way the figure went."""
    if tone == "same":
        return "off"
    return "normal" if card.better == "higher" else "inverse"


def _arrow(card: Figure) -> Literal["up", "down"]:
    return "up" if (card.now or 0.0) > (card.before or 0.0) else "down"
