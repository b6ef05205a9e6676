import json
import re
from dataclasses import replace

import numpy as np
import pytest

from tests.unit.caching.traces import SESSIONS, written
from tests.unit.telemetry.pool.scarce import ENGINES, scarce
from twin.caching.accesses import accesses_of
from twin.caching.comparison import compare_policies
from twin.caching.gpu_pool import GpuPool
from twin.caching.question import CacheQuestion
from twin.report.charts.cache import below_chart, rate_chart
from twin.report.charts.hits import hits_over_time, preemptions_over_time, with_pool_marked
from twin.report.charts.pool import pool_area, pool_map
from twin.report.charts.style import themed
from twin.telemetry.pool.history import pool_history
from twin.telemetry.pool.samples import KINDS
from twin.workload.readers import read_trace

vl_convert = pytest.importorskip("vl_convert")
altair = pytest.importorskip("altair")

_CHARTS = (pool_map, pool_area, hits_over_time, preemptions_over_time)


@pytest.fixture(scope="module")
def history():
    return pool_history(scarce())


@pytest.mark.parametrize("make", _CHARTS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_chart_is_valid_and_draws(history, make, theme):
    chart = make(history)
    assert re.fullmatch(r"[A-Z].*\.", chart.alt), chart.alt
    assert chart.caption
    json.dumps(chart.spec, allow_nan=False)
    dressed = themed(chart.spec, theme)
    # The schema says nothing of the data, and takes its time with each of 8,000 cells.
    some = {**dressed, "data": {"values": chart.rows[:20]}} if "data" in dressed else dressed
    altair.Chart.from_dict(some)
    assert vl_convert.vegalite_to_svg(dressed).startswith("<svg")


def test_the_map_has_a_cell_an_instant_and_row(history):
    rows = pool_map(history).rows
    assert len(rows) == 160 * 50
    assert "160 instants" in pool_map(history).caption
    assert "50 rows" in pool_map(history).caption
    for row in rows:
        blocks = [row[kind] for kind in KINDS]
        assert sum(blocks) == row["block_end"] - row["block"]
        assert row[row["mostly"]] == max(blocks)
    assert {row["mostly"] for row in rows} >= {"owned", "free"}
    assert sum(row["shared"] for row in rows) > 0  # prefixes are shared


def test_the_area_stacks_all_blocks_and_marks_preemptions(history):
    chart = pool_area(history)
    assert {row["owned"] + row["cached"] + row["free"] for row in chart.rows} == {99}
    assert sum(row["preemptions"] for row in chart.rows) == len(history.losses)
    assert len(chart.spec["layer"]) == 2
    calm = pool_area(replace(history, losses=()))
    assert len(calm.spec["layer"]) == 1
    assert "▲" not in calm.caption


def test_hits_are_those_of_each_interval(history):
    rows = hits_over_time(history).rows
    assert sum(row["queries_tokens"] for row in rows) == history.queries_tokens.sum()
    for row in rows:
        assert row["hit_pct"] == pytest.approx(
            100 * row["hits_tokens"] / row["queries_tokens"], rel=1e-4
        )


def test_costs_add_up(history):
    rows = preemptions_over_time(history).rows
    assert sum(row["preemptions"] for row in rows) == len(history.losses)
    assert sum(row["recomputed_tokens"] for row in rows) == history.recomputed_tokens
    total_ms = sum(row["recomputed_ms"] for row in rows)
    assert total_ms == pytest.approx(1e3 * history.recomputed_s, rel=1e-3)


def test_what_there_is_nothing_of_is_said(history):
    for make in _CHARTS:
        assert make(None).spec == {}
        assert make(None).alt == "No step ran in this window."
    assert preemptions_over_time(replace(history, losses=())).alt == "No request was preempted."
    off = replace(
        history,
        queries_tokens=np.zeros_like(history.queries_tokens),
        hits_tokens=np.zeros_like(history.hits_tokens),
    )
    assert "prefix cache is off" in hits_over_time(off).alt
    counted = pool_history(scarce(**ENGINES["sglang"]))
    assert pool_map(counted).spec == {}
    assert "counts its KV tokens" in pool_map(counted).alt
    assert pool_area(counted).spec


def test_one_of_several_cores_is_named():
    history = pool_history(scarce(cluster={"replicas": 2, "router": "round_robin"}))
    for make in (pool_map, pool_area):
        assert f"engine core {history.core}" in make(history).alt
        assert f"Engine core {history.core} of 2" in make(history).caption


@pytest.mark.parametrize("token_bytes", [0, 131072])
@pytest.mark.parametrize("make", [rate_chart, below_chart])
def test_the_own_pool_is_marked_where_it_lies(tmp_path, make, token_bytes):
    accesses = accesses_of(read_trace(written(tmp_path, SESSIONS)))
    pool = GpuPool("llama-3.1-8b", "h100_sxm", 1, 4 * 512)
    question = CacheQuestion(("lru",), (3, 4, 6), token_bytes=token_bytes, pool=pool)
    found = compare_policies("t", accesses, question)
    plain = make(found)
    chart = with_pool_marked(plain, found, "this GPU's pool")
    rule, words = chart.spec["layer"][-2:]
    at = rule["encoding"]["x"]["datum"]
    assert at == (pytest.approx(4 * 512 * token_bytes / 1e9, rel=1e-4) if token_bytes else 4)
    assert words["mark"]["text"] == "this GPU's pool"
    assert len(chart.spec["layer"]) == len(plain.spec["layer"]) + 2
    altair.Chart.from_dict(themed(chart.spec))
    assert "this GPU" in vl_convert.vegalite_to_svg(themed(chart.spec))
    other = compare_policies("t", accesses, replace(question, pool=None))
    assert with_pool_marked(plain, other, "x") == plain
