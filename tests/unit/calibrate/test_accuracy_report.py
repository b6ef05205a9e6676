import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from calibrate.accuracy.charts import METRICS, residuals
from calibrate.accuracy.groups import Errors, groups, is_saturated
from calibrate.accuracy.html import accuracy_page
from calibrate.accuracy.predict import Prediction
from calibrate.accuracy.report import Judgement, as_json, class_groups, print_report
from calibrate.accuracy.rows import Row


def prediction(tpot=0.0, ttft=0.0, **more):
    row = Row(
        row_id=more.pop("row_id", "r"), gpu="h200_sxm", engine=more.pop("engine", "vllm"),
        version="0.16.0", model=more.pop("model", "meta-llama/Llama-3.1-70B"), precision="fp8",
        gemm_quant="fp8", isl=1024, osl=1024, concurrency=more.pop("clients", 16), tp=4, pp=1,
        attention_dp=1, ep=1, exact=False, ttft_s=0.2, tpot_s=0.01, where="rows.csv:2",
    )  # fmt: skip
    return Prediction(row, 0.2 * (1 + ttft), 0.01 * (1 + tpot), **more)


MIXED = [
    prediction(0.02, -0.10),
    prediction(-0.04, 0.20),
    prediction(0.50, 4.0, clients=128),
    prediction(0.30, 2.0, kv_limited=True),
    prediction(0.10, 0.10, model="openai/gpt-oss-120b", moe=True, row_id="<b>&"),
    replace(prediction(), ttft_s=math.nan, tpot_s=math.nan, why_not="rows.csv:2: too large"),
]


def test_errors_by_hand():
    errors = Errors.of([0.01, -0.03, 0.02, -0.10])
    assert errors.n == 4
    assert errors.median == pytest.approx(2.5)
    assert errors.mean == pytest.approx(4.0)
    assert errors.p90 == pytest.approx(3 + 0.7 * 7)
    assert errors.bias == pytest.approx(-1.0)
    assert Errors.of([]).median is None


def test_saturation_just_at_and_above_the_limit():
    assert not is_saturated(prediction(clients=64))
    assert is_saturated(prediction(clients=65))
    assert is_saturated(prediction(kv_limited=True))
    assert is_saturated(prediction(front_end_limited=True))


def test_classes_partition_the_rows():
    found = {group.name: group for group in class_groups(MIXED)}
    assert sum(g.n for name, g in found.items() if name != "all") == found["all"].n == 6
    calm = found["dense, unsaturated"]
    assert (calm.n, calm.predicted) == (3, 2)
    assert calm.tpot.median == pytest.approx(3.0)
    assert found["dense, saturated"].n == 2
    assert found["MoE, unsaturated"].predicted == 1


def test_groups_are_by_gpu_engine_model_and_precision():
    assert [g.key for g in groups(MIXED)] == [
        ("h200_sxm", "vllm", "meta-llama/Llama-3.1-70B", "fp8"),
        ("h200_sxm", "vllm", "openai/gpt-oss-120b", "fp8"),
    ]


def test_answers_of_one_token_count_for_ttft_alone():
    short = replace(prediction(0.5, 0.3), tpot_s=math.nan)
    found = class_groups([prediction(0.02, 0.1), short])[0]
    assert (found.n, found.predicted, found.tpot.n, found.ttft.n) == (2, 2, 1, 2)
    assert found.tpot.median == pytest.approx(2.0)
    assert len(residuals("tpot", "all", [prediction(), short], METRICS[0]).rows) == 1
    assert len(residuals("ttft", "all", [prediction(), short], METRICS[1]).rows) == 2


def judgement():
    held_out = [replace(p, tpot_s=2 * p.tpot_s) for p in MIXED]
    return Judgement(MIXED, held_out, [True] * 5 + [False])


def test_json_has_the_promised_fields():
    data = json.loads(json.dumps(as_json(judgement()), allow_nan=False))
    group = data["groups"][0]
    assert {"gpu", "engine", "model", "precision", "n", "predicted", "tpot", "ttft"} == set(group)
    assert set(group["tpot"]) == {"median", "mean", "p90", "bias"}
    assert (data["overall"]["n"], data["overall"]["predicted"]) == (6, 5)
    assert data["held_out"]["overall"]["tpot"]["median"] > data["overall"]["tpot"]["median"]
    assert data["held_out"]["never_seen_rows"] == 1
    assert data["not_predicted"] == [{"id": "r", "why": "rows.csv:2: too large"}]
    assert data["points"][-1]["fitted_ttft_ms"] is None


def test_screen_and_page_show_fitted_and_held_out_apart():
    console = Console(record=True, width=160)
    print_report(judgement(), console)
    text = console.export_text()
    assert "fitted" in text
    assert "held out" in text
    assert "not predicted, 1 rows: too large" in text
    page = accuracy_page(judgement())
    assert page.count("<svg") == 4
    assert "held out" in page
    assert "<b>" not in page
    assert "http-equiv" in page
    assert "<script" not in page


def test_residual_chart():
    chart = residuals("tpot", "all", MIXED, METRICS[0])
    assert len(chart.rows) == 5
    assert chart.alt == "2 of 5 rows lie within ±5 % of the measured TPOT."
    assert not residuals("x", "none", MIXED[-1:], METRICS[0]).spec
