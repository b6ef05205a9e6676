import json

import pytest

from tests.unit.report.by_hand import hand_result
from twin.compare import as_side, compare
from twin.errors import InputError
from twin.report.metrics import summarise
from twin.report.output import summary_json


def _side(inputs=None, **figures):
    return {"inputs": inputs or {"seed": 1}, "summary": figures or None}


def test_only_differing_inputs_are_listed_by_dotted_key():
    a = {"policy": {"max_num_seqs": 256, "watermark": 0.0}, "gpu": "h100_sxm", "only_a": 1}
    b = {"policy": {"max_num_seqs": 512, "watermark": 0}, "gpu": "h100_sxm", "faults": [{"k": 2}]}
    changes = compare({"inputs": a}, {"inputs": b}).inputs
    assert [(c.key, c.a, c.b) for c in changes] == [
        ("policy.max_num_seqs", 256, 512),
        ("only_a", 1, "(not set)"),
        ("faults.0.k", "(not set)", 2),
    ]


def test_how_a_run_was_started_is_no_difference():
    assert compare({"inputs": {"command": "x", "a": 1}}, {"inputs": {"a": 1}}).inputs == ()


def test_true_is_not_one():
    assert compare({"inputs": {"x": True}}, {"inputs": {"x": 1}}).inputs != ()


@pytest.mark.parametrize(
    ("key", "a", "b", "verdict"),
    [
        ("preemptions", 10, 5, "better"),
        ("preemptions", 5, 10, "worse"),
        ("goodput_requests_per_s", 10.0, 11.0, "better"),
        ("prefix_cache_hit_rate", 0.5, 0.4, "worse"),
        ("kv_blocks", 100, 200, "neutral"),
        ("requests_per_s", 2.0, 2.0, "same"),
        ("requests_per_s", 2.0, 2.0049, "same"),
        ("requests_per_s", 2.0, 2.0051, "better"),
        ("requests_per_s", None, 2.0, "unknown"),
        ("requests_per_s", None, None, "same"),
        ("slo_met", False, True, "better"),
        ("never_heard_of", 1, 2, "neutral"),
    ],
)
def test_the_direction_of_a_figure_decides(key, a, b, verdict):
    figure = compare(_side(**{key: a}), _side(**{key: b})).figure(key)
    assert figure.verdict == verdict


def test_nested_figures_take_the_direction_of_their_key():
    figure = compare(
        _side(ttft_s={"p99": 1.0}, kv_cache_usage={"max": 0.5}),
        _side(ttft_s={"p99": 0.82}, kv_cache_usage={"max": 0.9}),
    )
    latency = figure.figure("ttft_s.p99")
    assert (latency.verdict, latency.direction) == ("better", "lower")
    assert latency.percent == pytest.approx(-18)
    assert latency.delta == pytest.approx(-0.18)
    assert figure.figure("kv_cache_usage.max").verdict == "neutral"


def test_a_change_from_zero_has_no_percentage():
    figure = compare(_side(preemptions=0), _side(preemptions=3)).figure("preemptions")
    assert (figure.percent, figure.delta, figure.verdict) == (None, 3, "worse")


def test_a_change_inside_the_joint_error_is_no_ranking():
    error = {"ttft_s": 0.10}
    a, near = _side(ttft_s={"p99": 1.0}), _side(ttft_s={"p99": 0.87})
    far = _side(ttft_s={"p99": 0.85})
    assert compare(a, near, relative_error=error).figure("ttft_s.p99").verdict == "within error"
    assert compare(a, far, relative_error=error).figure("ttft_s.p99").verdict == "better"
    assert compare(a, near).figure("ttft_s.p99").verdict == "better"


def test_the_objective_and_layout_version_are_no_figures():
    a, b = summarise(hand_result(), {"ttft_s": 1}), summarise(hand_result(), {"ttft_s": 2})
    keys = {change.key.partition(".")[0] for change in compare(_side(**a), _side(**b)).figures}
    assert not keys & {"slo", "schema_version"}
    assert "slo_attainment" in keys


def test_inputs_alone_when_a_side_has_no_summary():
    comparison = compare(_side(preemptions=1), {"inputs": {"seed": 2}, "summary": None})
    assert comparison.figures == ()
    assert len(comparison.inputs) == 1


def test_a_comparison_is_plain_json():
    a, b = hand_result(seed=1), hand_result(seed=2)
    comparison = compare(
        {"inputs": a.inputs, "summary": summarise(a)}, {"inputs": b.inputs, "summary": summarise(b)}
    )
    data = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert data["inputs"] == [{"key": "seed", "a": 1, "b": 2}]
    assert {f["verdict"] for f in data["figures"]} <= {"same"}


def test_sides_are_read_from_results_scenarios_and_policies():
    result = hand_result(seed=1)
    side = as_side(json.loads(summary_json(result, summarise(result))))
    assert side["inputs"] == {"seed": 1}
    assert side["summary"]["finished"] == 3
    assert "notes" not in side["summary"]
    assert as_side({"max_num_seqs": 8}) == {"inputs": {"max_num_seqs": 8}, "summary": None}
    nested = {"inputs": {"a": 1}, "summary": {"preemptions": 1}}
    assert as_side(nested) == nested


@pytest.mark.parametrize("side", [{}, {"inputs": [1]}, {"inputs": {"a": 1}, "summary": 3}])
def test_what_is_no_side_is_an_input_error(side):
    with pytest.raises(InputError, match=r"^B: "):
        compare({"inputs": {"a": 1}}, side)
