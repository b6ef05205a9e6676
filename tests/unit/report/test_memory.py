"""The answer of `twin memory` on paper: terminal, page, drawing."""

import io

import pytest
from rich.console import Console

from twin.load import load_scenario
from twin.memory.claims import judged_claims
from twin.memory.explanation import explain
from twin.memory.rows import BYTE_KINDS
from twin.report.memory import print_claims, print_memory
from twin.report.memory_chart import KIND_TITLES, bytes_heat_map
from twin.report.memory_page import memory_page, memory_svg

ATTACK = "<script>alert('x')</script>"


@pytest.fixture(scope="module")
def found():
    return explain(load_scenario("chat-h100", {"name": ATTACK}))


def printed(show, what, width=110):
    console = Console(file=io.StringIO(), width=width)
    show(console, what)
    return console.file.getvalue()


def test_the_terminal_has_every_row_in_110_columns(found):
    text = printed(print_memory, found)
    assert max(len(line) for line in text.splitlines() if line.startswith(("│", "┃"))) <= 110
    assert "…" not in text
    assert sum(line.startswith("│   128 │") for line in text.splitlines()) == 3 * 4
    assert "not measured on h100_sxm" in text


def test_claims_are_folded_not_cut():
    text = printed(print_claims, judged_claims())
    assert "…" not in text
    assert text.count("F07") == 3


def test_the_chart_has_a_cell_a_row_and_kind(found):
    chart = bytes_heat_map(found)
    assert len(chart.rows) == len(found.rows) * len(BYTE_KINDS)
    assert {row["kind"] for row in chart.rows} == set(KIND_TITLES.values())
    assert sum(row["share_pct"] for row in chart.rows) == pytest.approx(
        100 * len(found.rows), rel=1e-3
    )
    assert [row["kv_dtype"] for row in chart.rows][:30] == ["bf16"] * 30


def test_the_page_escapes_names_and_needs_nothing_else(found):
    pytest.importorskip("vl_convert")
    page = memory_page(found)
    assert ATTACK not in page
    assert "&lt;script&gt;alert" in page
    assert "src=" not in page.split("<script")[0]
    assert page.count('id="chart-kv_bytes"') == 1


def test_the_drawing_is_svg(found):
    pytest.importorskip("vl_convert")
    svg = memory_svg(found)
    assert svg.startswith("<svg")
    assert "sector waste" in svg
