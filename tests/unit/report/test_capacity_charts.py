import itertools

import altair
import pytest

from tests.unit.report.test_charts import _marks
from twin.llm.capacity import CapacityQuery, capacity, capacity_by_tp
from twin.llm.models import MODELS
from twin.report.budget import KV, MISSING, PARTS, RESERVE, WEIGHTS, budget_of
from twin.report.charts.budget import memory_budget
from twin.report.charts.chart import MAX_MARKS
from twin.report.charts.concurrency import ContextMark, KvPool, concurrency
from twin.report.charts.style import themed

vl_convert = pytest.importorskip("vl_convert")

GIB = 2**30
H100 = 84_930_000_000


def _query(llm="llama-3.3-70b", engine="vllm", **changes):
    return CapacityQuery(MODELS[llm], H100, engine=engine, **changes)


def _budgets(query):
    return [budget_of(query.engine, tp, found) for tp, found in capacity_by_tp(query).items()]


def _drawn(chart):
    altair.Chart.from_dict(themed(chart.spec))
    for theme in ("light", "dark"):
        scene = vl_convert.vegalite_to_scenegraph(themed(chart.spec, theme))
        assert 0 < sum(_marks(scene["scenegraph"]).values()) <= MAX_MARKS


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_the_parts_of_a_budget_that_fits_fill_the_gpu(engine):
    found = capacity(_query("llama-3.1-8b", engine))
    budget = budget_of(engine, 1, found)
    assert budget.fits
    assert budget.too_much_bytes == 0
    assert budget.parts[MISSING] == 0
    assert sum(budget.parts.values()) == pytest.approx(H100, abs=64)


def test_what_does_not_fit_is_the_budget_and_one_longest_request_past_the_limit():
    query = _query(max_model_len=32768)
    found = capacity(query)
    budget = budget_of("vllm", 1, found)
    longest = 32768 * found.kv_bytes_per_token_per_gpu
    assert not budget.fits
    assert budget.parts[MISSING] == longest
    spent = found.weights_bytes + found.overhead_bytes + longest
    assert budget.too_much_bytes == pytest.approx(spent - found.usable_bytes, abs=64)
    assert budget.parts[RESERVE] == H100 - found.usable_bytes


def test_too_little_kv_for_one_request_misses_the_rest_of_it():
    found = capacity(_query(tp=2))
    budget = budget_of("vllm", 2, found)
    assert found.kv_bytes > 0
    assert not found.fits
    assert budget.parts[KV] + budget.parts[MISSING] == 131072 * found.kv_bytes_per_token_per_gpu
    assert budget.too_much_bytes == pytest.approx(budget.parts[MISSING], abs=64)


def test_budget_chart_stacks_every_part_and_draws_past_the_limit():
    budgets = _budgets(_query())
    chart = memory_budget(budgets, "H100", 2)
    _drawn(chart)
    assert {row["tp"] for row in chart.rows} == {"TP 1", "TP 2, now", "TP 4", "TP 8"}
    for budget in budgets:
        name = "TP 2, now" if budget.tp == 2 else f"TP {budget.tp}"
        rows = [row for row in chart.rows if row["tp"] == name]
        assert [row["part"] for row in rows] == [p for p in PARTS if budget.parts[p]]
        for one, following in itertools.pairwise(rows):
            assert following["start_gib"] == one["end_gib"]
        over = rows[-1]["end_gib"] > H100 / GIB + 0.01
        assert over is not budget.fits
    domain = chart.spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert domain[1] > max(row["end_gib"] for row in chart.rows)
    assert "TP 1 does not fit" in chart.alt
    assert "TP 4 leaves" in chart.alt
    svg = vl_convert.vegalite_to_svg(themed(chart.spec))
    assert "too much" in svg
    assert "H100: 79.1 GiB" in svg


def test_a_budget_that_fits_everywhere_speaks_of_nothing_missing():
    chart = memory_budget(_budgets(_query("llama-3.1-8b")), "H100", 1)
    _drawn(chart)
    domain = chart.spec["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert MISSING not in domain
    assert domain[0] == WEIGHTS
    assert "missing" not in chart.caption
    assert "too much" not in vl_convert.vegalite_to_svg(themed(chart.spec))


def test_concurrency_counts_whole_blocks_and_whole_requests():
    pool = KvPool("auto", 1000, 16)
    assert pool.requests(16) == 1000
    assert pool.requests(17) == 500
    assert pool.requests(16_001) == 0


def test_concurrency_chart_has_a_line_a_dtype_and_the_scenarios_contexts():
    pools = [KvPool("auto", 1000, 16), KvPool("fp8", 2000, 16)]
    marks = [ContextMark("mean context", 900), ContextMark("P99 context", 4000)]
    chart = concurrency(pools, 32768, marks, 256)
    _drawn(chart)
    fp8 = {r["context_tokens"]: r["requests"] for r in chart.rows if r["kv_dtype"] == "fp8"}
    auto = {r["context_tokens"]: r["requests"] for r in chart.rows if r["kv_dtype"] == "auto"}
    assert fp8[128] == 250
    assert auto[128] == 125
    assert max(auto) < 32768  # 16,000 tokens hold no request that long
    assert "stops where not even one request fits" in chart.caption
    assert "auto 17 at the mean context 900, 4 at the P99 context 4,000" in chart.alt
    svg = vl_convert.vegalite_to_svg(themed(chart.spec))
    assert "P99 context 4,000" in svg
    assert "engine runs at most 256" in svg


def test_concurrency_without_room_for_kv_is_said_in_words():
    chart = concurrency([KvPool("auto", 0, 16)], 4096, [], 256)
    assert chart.spec == {}
    assert chart.alt.startswith("No request fits")
