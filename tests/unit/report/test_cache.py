"""The answer of `twin cache` on paper: terminal, CSV, page, drawing."""

import csv
import io

import pytest
from rich.console import Console

from tests.unit.caching.traces import SESSIONS, written
from twin.caching.accesses import accesses_of
from twin.caching.comparison import compare_policies
from twin.caching.question import BELADY, CacheQuestion
from twin.paging.eviction import EVICTION
from twin.report.cache import cache_csv, print_cache
from twin.report.cache_page import cache_page, cache_svg
from twin.report.charts.cache import _LOOKS, below_chart, rate_chart
from twin.workload.readers import read_trace

ATTACK = "<script>alert('x')</script>.jsonl"


@pytest.fixture(params=["", "llama-3.1-8b"])
def found(request, tmp_path):
    accesses = accesses_of(read_trace(written(tmp_path, SESSIONS)))
    token_bytes = 131072 if request.param else 0
    question = CacheQuestion(tuple(EVICTION), (3, 4, 6), llm=request.param, token_bytes=token_bytes)
    return compare_policies(ATTACK, accesses, question)


def printed(found, width=110):
    console = Console(file=io.StringIO(), width=width)
    print_cache(console, found)
    return console.file.getvalue()


def test_the_terminal_has_every_capacity_in_110_columns(found):
    text = printed(found)
    assert "…" not in text
    assert "Block reuse, the most any cache can hit: 60 %" in text.replace("60.0", "60")
    rows = [line for line in text.splitlines() if line.startswith("│")]
    assert len(rows) == 2 * 3
    assert ("GB" in text) == bool(found.question.llm)


def test_the_csv_holds_what_the_json_holds(found):
    rows = list(csv.DictReader(io.StringIO(cache_csv(found))))
    data = found.as_dict()["rows"]
    assert len(rows) == len(data) == 3 * (len(EVICTION) + 1)
    for row, fact in zip(rows, data, strict=True):
        assert row == {key: "" if value is None else str(value) for key, value in fact.items()}


def test_every_policy_has_a_look_of_its_own():
    assert set(_LOOKS) == {*EVICTION, BELADY}
    assert len({shape for _, shape in _LOOKS.values()}) == len(_LOOKS)
    assert len({role for role, _ in _LOOKS.values()}) == len(_LOOKS)


def test_the_charts_show_all_figures(found):
    rates, below = rate_chart(found), below_chart(found)
    assert len(rates.rows) == 3 * (len(EVICTION) + 1)
    assert len(below.rows) == 3 * len(EVICTION)
    assert all(row["percent"] >= 0 for row in below.rows)
    assert ("capacity_gb" in rates.rows[0]) == bool(found.question.llm)


def test_page_and_drawing(found):
    page = cache_page(found)
    assert ATTACK not in page
    assert page.count("<figure") == 2
    assert cache_svg(found).startswith("<svg")


def test_the_optimum_alone(tmp_path):
    accesses = accesses_of(read_trace(written(tmp_path, SESSIONS)))
    found = compare_policies("t", accesses, CacheQuestion((), (4,)))
    assert "Below" not in printed(found)
    assert below_chart(found).spec == {}
