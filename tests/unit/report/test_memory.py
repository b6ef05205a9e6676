"""The answer of `twin memory` on paper: terminal, page, drawing."""

import io
import json

import pytest
from rich.console import Console

from hwmodels.profile import HardwareProfile, Provenance, write_profile
from twin.cli.app import app
from twin.cli.running import run
from twin.load import load_scenario
from twin.memory.claims import judged_claims
from twin.memory.explanation import explain
from twin.memory.rows import BYTE_KINDS
from twin.report.charts.memory import KIND_TITLES, bytes_heat_map
from twin.report.memory import print_claims, print_memory
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


@pytest.fixture
def pretended(tmp_path):
    profile = HardwareProfile(
        name="h100_sxm-servetwin-0.1.0-dry-run",
        gpu="h100_sxm",
        engine="dry-run",
        engine_version="0.1.0",
        kind="kernels",
        provenance=Provenance("a dry run", "Apache-2.0", "2026-01-01"),
        tables={},
        parameters={"memory": {"walk_cycles": 612.5, "dram_cycles": 700.0}},
    )
    path = tmp_path / "mine-dry-run.npz"
    path.write_bytes(write_profile(profile))
    return path


def test_a_dry_runs_constants_are_pretended_everywhere(pretended, tmp_path, capsys):
    page, data = tmp_path / "kv.html", tmp_path / "kv.json"
    given = ["--set", f"profile={pretended}", "--set", "kv_layout.pools=cross_layer"]
    assert run(app, ["memory", "chat-h100", *given, "--out", str(page), "--json", str(data)]) == 0
    told = json.loads(data.read_text())
    assert told["pretended"] is True
    assert told["notes"][0].startswith("Durations and constants are pretended")
    assert any("page walk 612 cycles (300 cycles to 700 cycles): pretended" in n
               for n in told["notes"])  # fmt: skip
    walk = told["constants"]["walk_cycles"]
    assert walk["source"].startswith("pretended")
    assert (walk["measured"], walk["interval"]) == (False, [300, 700])
    assert "Durations and constants are pretended" in page.read_text()
    assert "Durations and constants are pretended" in capsys.readouterr().out
    layout_note = load_scenario(
        "chat-h100", {"profile": str(pretended), "kv_layout.pools": "cross_layer"}
    ).notes[-1]
    assert "nobody measured tlb_l3_reach_bytes, walkers; pretended by a dry run: walk_cycles" in (
        layout_note
    )


def test_json_has_the_notes_of_the_terminal(tmp_path, capsys):
    path = tmp_path / "kv.json"
    assert run(app, ["memory", "chat-h100", "--json", str(path)]) == 0
    notes = json.loads(path.read_text())["notes"]
    printed_notes = [
        line.removeprefix("Note: ")
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("Note: ")
    ]
    assert notes == printed_notes
    assert any(note.startswith("kernel us of int8, int4: no table") for note in notes)


def test_one_line_names_what_reads_least_from_dram(found):
    text = printed(print_memory, found)
    line = next(line for line in text.splitlines() if line.startswith("Fewest bytes from DRAM"))
    assert "1,280 B, int4 in blocks of 8, 16, 32, 64, 128, 256." in line
    assert "2,048 B, fp8 and int8 in blocks of" in line


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
