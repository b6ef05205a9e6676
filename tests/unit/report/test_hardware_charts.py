import itertools
import json
import math
import re

import pytest

from tests.unit.report.test_charts import _marks
from twin.report.charts import collectives, footprint, modelled
from twin.report.charts.axes import bytes_axis, bytes_domain
from twin.report.charts.chart import MAX_MARKS
from twin.report.charts.collectives import Timed, collective_time
from twin.report.charts.footprint import Latency, latency_by_footprint
from twin.report.charts.labels import PLACES, Spot, _box, _overlap, places
from twin.report.charts.modelled import (
    Compared,
    measured_against_modelled,
    median_errors,
    modelled_ratio,
)
from twin.report.charts.roofline import Operation, Roofs, roofline
from twin.report.charts.style import themed

vl_convert = pytest.importorskip("vl_convert")
altair = pytest.importorskip("altair")

ROOFS = Roofs(1e12, 0.8e12, {"bf16": 1e14, "fp8": 2e14})


def _operation(name="QKV", *, flops=1e9, num_bytes=1e8, seconds=1e-3, **more):
    asked = {"phase": "decode", "bound": "HBM", "measured": True, **more}
    return Operation(name, flops=flops, num_bytes=num_bytes, seconds=seconds, **asked)


def _charts():
    points = [
        Compared(family, "a shape", at * 1e-6, at * 1.1e-6)
        for family in modelled.LOOKS
        for at in (1, 30, 900)
    ]
    curve = [
        Latency(pattern, 2.0**power, 100.0 + power, 90.0, 200.0)
        for pattern in footprint.LOOKS
        for power in range(20, 38)
    ]
    timed = [
        Timed(ranks, 2.0**power, 1e-6 * ranks * (1 + 2 ** (power - 20)), "physics")
        for ranks in collectives.LOOKS
        for power in range(10, 31)
    ]
    used = [Timed(4, 3e5, 8e-6, "table", "decode")]
    return [
        roofline("a GPU", ROOFS, [_operation(whole=True), _operation("out", measured=False)]),
        measured_against_modelled("a GPU", points),
        modelled_ratio("a GPU", points),
        latency_by_footprint("a GPU", curve, {"L2 50 MiB": 5e7, "beyond": 1e15}, curve[:4]),
        collective_time("all-reduce", "a GPU", timed, timed[::4], used),
    ]


@pytest.mark.parametrize("chart", _charts(), ids=lambda chart: chart.name)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_charts_are_drawn_with_a_sentence_and_plain_rows(chart, theme):
    spec = themed(chart.spec, theme)
    altair.Chart.from_dict(spec)
    counts = _marks(vl_convert.vegalite_to_scenegraph(spec)["scenegraph"])
    assert 0 < sum(counts.values()) <= MAX_MARKS
    assert re.fullmatch(r"[A-Z0-9].*\.", chart.alt), chart.alt
    json.dumps([chart.spec, chart.rows], allow_nan=False)


def test_unmeasured_operations_are_hollow_and_those_without_flops_are_not_drawn():
    chart = roofline(
        "a GPU",
        ROOFS,
        [_operation(), _operation("head", measured=False), _operation("norm", flops=0.0)],
    )
    points = {row["name"]: row for row in chart.rows if row["line"] == "point"}
    assert set(points) == {"QKV", "head"}
    assert points["QKV"]["flop_per_byte"] == 10.0
    assert points["QKV"]["tflops"] == 1.0
    filled = {
        layer["transform"][0]["filter"].rpartition(" ")[2]: layer["mark"]["filled"]
        for layer in chart.spec["layer"]
        if layer["mark"]["type"] == "point"
    }
    assert filled == {"true": True, "false": False}
    assert points["head"]["measured"] is False


def test_roofs_begin_where_the_slope_meets_them():
    rows = roofline("a GPU", ROOFS, [_operation()]).rows
    compute = [row for row in rows if row["line"] == "compute"]
    assert [row["flop_per_byte"] for row in compute[::2]] == [100.0, 200.0]
    for row in rows:
        if row["line"] == "hbm":
            assert row["tflops"] == pytest.approx(row["flop_per_byte"])


def test_labels_keep_off_each_other_and_off_lines():
    spots = [Spot(100 + 7 * i, 100 + 3 * i, f"operation {i}") for i in range(12)]
    found = places(spots, 560, 380, [(300.0, float(y)) for y in range(0, 380, 3)])
    boxes = [_box(spot, place) for spot, place in zip(spots, found, strict=True) if place]
    assert 3 <= len(boxes) < len(spots)  # there is no room for all
    assert not any(_overlap(one, other) for one, other in itertools.combinations(boxes, 2))
    assert not any(box[0] < 300 < box[2] for box in boxes)
    assert places([Spot(5, 5, "a long label")], 20, 20) == [""]
    assert places([Spot(50, 50, "alone")], 560, 380) == [next(iter(PLACES))]


def test_the_median_error_is_that_of_the_points():
    points = [Compared("gemm", "", 1.0, ratio) for ratio in (1.1, 0.5, 1.3)]
    assert median_errors(points)["gemm"] == pytest.approx(0.3)
    assert "gemm 30 %" in measured_against_modelled("a GPU", points).alt


def test_more_points_than_marks_are_refused():
    points = [Compared("gemm", "", 1.0, 1.0)] * MAX_MARKS
    with pytest.raises(ValueError, match="fewer than"):
        modelled_ratio("a GPU", points)


def test_nothing_known_is_said_in_words():
    for chart in (
        measured_against_modelled("a GPU", []),
        modelled_ratio("a GPU", []),
        latency_by_footprint("a GPU", [], {}),
        collective_time("all-reduce", "a GPU", []),
    ):
        assert chart.spec == {}
        assert chart.alt.endswith(".")


def test_levels_outside_the_axis_are_left_out():
    curve = [Latency("a load a line", 2.0**power, 100.0, 90.0, 110.0) for power in (20, 30)]
    chart = latency_by_footprint("a GPU", curve, {"L2": 2.0**25, "last TLB": 2.0**40})
    assert "levels end at L2." in chart.alt


def test_byte_axes_tick_at_powers_of_two():
    axis = bytes_axis("bytes", "Buffer (bytes)", bytes_domain(1000, 3e9))
    assert axis["scale"]["domain"] == [512.0, 2.0**32]
    assert all(math.log2(tick).is_integer() for tick in axis["axis"]["values"])
    assert bytes_domain(1024, 1024) == (1024.0, 2048.0)
