"""Cards: a figure with its change against the baseline, in words as well as in colour."""

from dataclasses import dataclass
from typing import Literal

import streamlit as st

from twin.report.numbers import MISSING, change

Better = Literal["lower", "higher", "neither"]


@dataclass(frozen=True, slots=True)
class Card:
    """One figure.

    Attributes:
        title: its name.
        value: as shown.
        now, before: the figure and that of the baseline; None: not known.
        better: which way is better.
        error: relative error of the ratio of two forecasts; None: not known.
        about: what it is.
    """

    title: str
    value: str
    now: float | None
    before: float | None
    better: Better
    error: float | None
    about: str = ""


def cards(rows: list[Card], *, compared: bool, columns: int = 4) -> None:
    """Draw cards in rows of so many; `compared` says whether there is a baseline to tell of."""
    for start in range(0, len(rows), columns):
        for place, card in zip(st.columns(columns), rows[start : start + columns], strict=False):
            with place:
                _card(card, compared)


def _card(card: Card, compared: bool) -> None:
    if not compared:
        st.metric(card.title, card.value, help=card.about or None, border=True)
        return
    words, tone = verdict_of(card)
    st.metric(
        card.title,
        card.value,
        words,
        delta_color={"better": "normal", "worse": "inverse"}.get(tone, "off"),  # type: ignore[arg-type]
        delta_arrow="off" if tone == "same" else _arrow(card),
        help=card.about or None,
        border=True,
    )


def verdict_of(card: Card) -> tuple[str, str]:
    """Return the change in words and its tone: better, worse or same."""
    if card.now is None or card.before is None:
        return f"{MISSING} vs A", "same"
    if card.before == 0:
        return ("±0 % vs A", "same") if card.now == 0 else ("A has none", "same")
    ratio = card.now / card.before
    words = f"{change(100 * (ratio - 1))} vs A"
    if ratio == 1:
        return words, "same"
    if card.error is None:
        return f"{words}, error unknown", "same"
    if ratio > 0 and max(ratio, 1 / ratio) <= 1 + card.error:
        return f"{words}, within error", "same"
    if card.better == "neither":
        return words, "same"
    tone = "better" if (ratio < 1) == (card.better == "lower") else "worse"
    return f"{words}, {tone}", tone


def _arrow(card: Card) -> Literal["up", "down"]:
    return "up" if (card.now or 0.0) > (card.before or 0.0) else "down"
