"""What cards, verdicts and downloads say."""

import pytest

from app.answers.forecast.figures import Figure
from app.parts.cards import verdict_of
from app.parts.figure import csv_text


def _figure(now: float | None, before: float | None, better: str, error: float | None) -> Figure:
    return Figure("x", "1", now, before, better, error)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("figure", "words", "tone"),
    [
        (_figure(0.8, 1.0, "lower", 0.1), "-20 % vs A, better", "better"),
        (_figure(1.3, 1.0, "lower", 0.1), "+30 % vs A, worse", "worse"),
        (_figure(1.3, 1.0, "higher", 0.1), "+30 % vs A, better", "better"),
        (_figure(1.05, 1.0, "lower", 0.1), "+5.0 %, within error", "same"),
        (_figure(1.3, 1.0, "lower", None), "+30 %, error unknown", "same"),
        (_figure(1.3, 1.0, "neither", 0.0), "+30 % vs A", "same"),
        (_figure(20.0, 1.0, "lower", 0.1), "20 times A, worse", "worse"),
        (_figure(None, 1.0, "lower", 0.1), "– vs A", "same"),
        (_figure(1.0, 0.0, "lower", 0.1), "A has none", "same"),
        (_figure(0.0, 0.0, "lower", 0.1), "±0 % vs A", "same"),
    ],
)
def test_a_change_has_a_sign_and_a_word(figure: Figure, words: str, tone: str) -> None:
    assert verdict_of(figure) == (words, tone)


def test_text_that_a_spreadsheet_would_run_is_quoted() -> None:
    text = csv_text([{"name": "=1+1", "value": -1.5}, {"name": "plain", "other": "@x"}])
    assert text == "name,value,other\n'=1+1,-1.5,\nplain,,'@x\n"
