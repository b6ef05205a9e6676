import io

import pytest
from rich.console import Console

from tests.unit.report.by_hand import hand_result
from twin.compare import compare, comparison_report
from twin.compare.render import SHOWN, describe
from twin.report.metrics import summarise


def _side(inputs=None, **figures):
    return {"inputs": inputs or {"seed": 1}, "summary": figures or None}


def _printed(comparison, **names):
    stream = io.StringIO()
    Console(file=stream, width=110, color_system=None).print(comparison_report(comparison, **names))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ({"ttft_s": {"p99": 1.0}}, {"ttft_s": {"p99": 0.82}}, "-18 % vs A, better"),
        ({"ttft_s": {"p99": 1.0}}, {"ttft_s": {"p99": 1.5}}, "+50 % vs A, worse"),
        ({"kv_blocks": 100}, {"kv_blocks": 200}, "+100 % vs A"),
        ({"preemptions": 0}, {"preemptions": 3}, "+3.00 vs A, worse"),
        ({"preemptions": 3}, {"preemptions": 3}, "same"),
        ({"requests_per_s": 1.0}, {"requests_per_s": None}, "only A has it"),
        ({"requests_per_s": None}, {"requests_per_s": 1.0}, "A has none"),
    ],
)
def test_every_change_has_a_sign_and_a_word(a, b, text):
    (figure,) = compare(_side(**a), _side(**b)).figures
    assert describe(figure) == text


def test_within_error_is_said():
    error = {"ttft_s": 0.2}
    comparison = compare(
        _side(ttft_s={"p99": 1.0}), _side(ttft_s={"p99": 0.9}), relative_error=error
    )
    assert describe(comparison.figures[0]) == "-10 % vs A, within error"


def test_table_shows_inputs_and_figures_under_the_names_given():
    a = {"inputs": {"policy": {"max_num_seqs": 8, "x": True}}, "summary": summarise(hand_result())}
    b = {
        "inputs": {"policy": {"max_num_seqs": None, "x": False}},
        "summary": summarise(hand_result()),
    }
    text = _printed(compare(a, b), name_a="[red]base", name_b="new")
    assert "[red]base" in text
    row = next(line for line in text.splitlines() if line.startswith("policy.max_num_seqs"))
    assert row.split() == ["policy.max_num_seqs", "8", "default"]
    assert "policy.x" in text
    assert "TTFT P99" in text
    assert "same" in text


def test_policies_alone_show_inputs_alone():
    text = _printed(compare({"inputs": {"a": 1}}, {"inputs": {"a": 2}}))
    assert "Figure" not in text
    assert "The inputs are the same." in _printed(
        compare({"inputs": {"a": 1}}, {"inputs": {"a": 1}})
    )


def test_every_shown_figure_exists_in_a_summary():
    side = {"inputs": {"a": 1}, "summary": summarise(hand_result(), {"ttft_s": 1})}
    keys = {change.key for change in compare(side, side).figures}
    # Those of clients exist where there are clients.
    assert {key for key, _, _ in SHOWN if not key.startswith("clients.")} <= keys
