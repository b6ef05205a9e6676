"""`fit` and `plot` over rows of a made-up measurement, and what they refuse."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from measuring_fakes import H200, gemm, pretended_rows, session

from calibrate.cli import app
from calibrate.measuring.device import Properties, facts_of
from calibrate.measuring.item import Item
from calibrate.measuring.journal import Journal
from calibrate.measuring.plan import kernel_items
from calibrate.measuring.results import write_results
from calibrate.measuring.session import Session
from calibrate.measuring.suite import Outcome
from hwmodels.gpus import GPUS
from hwmodels.measured import MeasuredCostModel
from hwmodels.ops import DecodeAttention, Gemm, Source
from hwmodels.profile import read_profile
from twin.cli.running import run

QUEUES = [items for items, _ in kernel_items(H200) if items]
FAMILIES = ("gemm.bf16", "prefill.128.bf16", "decode.128.bf16", "decode_warm.128.bf16",
            "prefill_cached.128.bf16")  # fmt: skip
STREAM = [
    Item("stream", "stream", {"bytes": 2**i, "mode": mode}, "stream", l2=None, is_probe=True)
    for i in range(20, 34)
    for mode in (0, 2)
]


def some_items(most: int = 1000) -> list[Item]:
    found = []
    for items in QUEUES:
        if items[0].table in FAMILIES and items[0].shape.get("heads", 32) == 32:
            kept = [item for item in items if item.shape.get("heads", 32) == 32]
            found += kept[:most]
    return found + STREAM


def write(folder: Path, one: Session, items: list[Item], slower: float = 1.0) -> None:
    with Journal(folder, one) as journal:
        for row in pretended_rows(items):
            told = {"gpu": one.facts["name"], "engine": one.engine}
            times = {n: slower * getattr(row, n) for n in ("seconds_median", "seconds_p90")}
            journal.add(row.model_copy(update={**told, **times}))
        write_results(folder, journal.kept, Outcome())


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured")
    write(folder, session(), some_items())
    return folder


@pytest.fixture(scope="module")
def fitted(measured, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    out, figures = folder / "p.npz", folder / "p.json"
    assert run(app, ["fit", str(measured), "--out", str(out), "--json", str(figures)]) == 0
    return out, json.loads(figures.read_text())


def test_fit_makes_a_profile_that_prices(fitted):
    out, _ = fitted
    profile = read_profile(out)
    assert (profile.name, profile.gpu) == ("h200_sxm-servetwin-0.1.0", "h200_sxm")
    assert profile.facts["decode_l2"] == "cold"
    assert profile.facts["gpu"]["num_sms"] == 132
    assert set(profile.parameters) >= {"gemm", "prefill", "decode", "stream", "memory"}
    model = MeasuredCostModel(profile, H200)
    cost = model.cost(Gemm(256, 4096, 4096))
    assert cost.source is Source.TABLE
    op = DecodeAttention(64, 64 * 1500, 1500, 32, 8, 128, 128, 4096.0)
    assert model.cost(op).source is Source.INTERPOLATED


def test_the_cost_model_passes_over_tables_it_does_not_know(fitted):
    profile = read_profile(fitted[0])
    known = {n: t for n, t in profile.tables.items() if n.split(".")[0] in ("gemm", "decode")}
    assert set(profile.tables) - set(known) >= {"stream", "decode_warm.128.bf16"}
    ops = (Gemm(77, 4096, 4096), DecodeAttention(3, 900, 300, 32, 8, 128, 128, 4096.0))
    whole, part = (MeasuredCostModel(p, H200) for p in (profile, replace(profile, tables=known)))
    assert [whole.cost(op) for op in ops] == [part.cost(op) for op in ops]


def test_held_out_errors_are_those_of_the_noise(fitted):
    _, figures = fitted
    assert figures["pretended"] is False
    families = figures["families"]
    for name in ("gemm", "prefill", "decode"):
        # Noise of 3 % gives 2 %, and a neighbour's adds.
        assert 1.0 < families[name]["held_out"]["median_pct"] < 4.0
        assert families[name]["passes"] is True
        assert families[name]["fitted"]["median_pct"] < 6.0
        assert families[name]["rows"] > families[name]["held_out"]["rows"]
    assert families["prefill over a prefix"]["held_out"]["rows"] == len(
        [i for i in some_items() if i.table.startswith("prefill_cached")]
    )
    assert {"gemm: m 1-16", "decode: KV beyond the L2"} <= set(figures["groups"])


def test_decode_is_judged_against_the_copy(fitted):
    _, figures = fitted
    share = figures["paged_decode"]
    assert share["bar"] == 0.85
    assert share["rows"] > 0
    assert share["passes"] is (share["share_of_copy"] >= 0.85)


def test_fit_prints_its_table(measured, tmp_path, capsys):
    assert run(app, ["fit", str(measured), "--out", str(tmp_path / "p.npz")]) == 0
    printed = capsys.readouterr().out
    pair = r" +[\d.]+ / [\d.]+ "
    assert re.search(rf"gemm +│ +460 │{pair}│ +\d+ │{pair}│ 4.0 / 12.0", printed)
    assert "paged decode over 256 MB of KV and more:" in printed
    assert "DRY RUN" not in printed


def test_a_dry_run_says_so_everywhere(tmp_path, capsys):
    items = some_items(30)
    write(tmp_path / "rows", session("dry-run"), items)
    assert run(app, ["fit", str(tmp_path / "rows"), "--out", str(tmp_path / "p.npz")]) == 0
    assert "DRY RUN: all seconds are pretended" in capsys.readouterr().out
    assert not (tmp_path / "p.npz").exists()
    profile = read_profile(tmp_path / "p-dry-run.npz")
    assert profile.name == "h200_sxm-servetwin-0.1.0-dry-run"
    assert profile.engine == "dry-run"
    assert "nothing was measured" in profile.provenance.notes[0]
    plots = tmp_path / "plots"
    assert run(app, ["plot", str(tmp_path / "p-dry-run.npz"), "--out", str(plots)]) == 0
    assert "DRY RUN" in capsys.readouterr().out
    assert "DRY RUN" in (plots / "measured-against-fitted.html").read_text()
    for picture in plots.glob("*.svg"):
        assert "pretended" in picture.read_text()


def test_few_rows_still_make_a_profile(tmp_path, capsys):
    write(tmp_path / "rows", session(), [gemm(m) for m in (1, 2, 4)])
    assert run(app, ["fit", str(tmp_path / "rows"), "--out", str(tmp_path / "p.npz")]) == 0
    assert "too few" in capsys.readouterr().out
    profile = read_profile(tmp_path / "p.npz")
    assert profile.parameters == {}
    assert profile.provenance.fitted_on == "nothing"


def test_a_gpu_nobody_wrote_down_gets_a_profile(tmp_path):
    told = Properties("NVIDIA GeForce RTX 3090", (8, 6), 82, 6 * 2**20, 25_438_126_080)
    one = replace(session(), facts=facts_of(told))
    write(tmp_path / "rows", one, some_items(200), slower=12.0)
    assert run(app, ["fit", str(tmp_path / "rows"), "--out", str(tmp_path / "p.npz")]) == 0
    profile = read_profile(tmp_path / "p.npz")
    facts = profile.facts["gpu"]
    assert 3e11 < facts["hbm_bytes_per_s"] < 5e11  # the driver tells none: the stream's
    assert "measured" in facts["sources"]["hbm_bytes_per_s"]
    assert profile.held_out["gemm"].median_pct < 6.0
    assert {"gemm", "prefill", "decode"} <= set(profile.parameters)


def test_rows_passed_on_without_their_journal_are_enough(measured, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "measurements.csv").write_bytes((measured / "measurements.csv").read_bytes())
    assert run(app, ["plot", str(copy), "--out", str(tmp_path / "plots")]) == 0
    names = {path.name for path in (tmp_path / "plots").iterdir()}
    assert names == {
        "gemm.svg", "decode.svg", "prefill.svg", "bandwidth.svg", "ratios.svg",
        "measured-against-fitted.html",
    }  # fmt: skip


def test_the_same_rows_give_the_same_profile(measured, tmp_path, fitted):
    assert run(app, ["fit", str(measured), "--out", str(tmp_path / "p.npz")]) == 0
    assert (tmp_path / "p.npz").read_bytes() == fitted[0].read_bytes()


def test_import_takes_the_same_rows(measured, tmp_path):
    asked = [
        "--gpu",
        "h200_sxm",
        "--engine",
        "servetwin",
        "--no-fit",
        "--out",
        str(tmp_path / "p.npz"),
    ]
    for name in ("measurements.csv", "measurements.parquet"):
        assert run(app, ["import", "measurements", str(measured / name), *asked]) == 0
        assert "stream" in read_profile(tmp_path / "p.npz").tables


@pytest.fixture
def refused(capsys, tmp_path, monkeypatch):
    """Run a command that must be refused; return the line it says."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = run(app, [str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert (code, captured.out, captured.err.count("\n")) == (2, "", 1), captured
        assert "Traceback" not in captured.err
        return captured.err

    return call


def test_bad_folders_and_files_are_one_line(refused, tmp_path, measured):
    (tmp_path / "empty").mkdir()
    for command in ("fit", "plot"):
        says = refused(command, tmp_path / "empty", "--out", tmp_path / "x")
        assert "empty: holds no measurements; name a folder that twin-calibrate measure" in says
    assert "holds no measurements" in refused("fit", tmp_path / "no", "--out", "x.npz")
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "rows.jsonl").write_text("x\n")
    assert "is not a journal" in refused("fit", rows, "--out", "x.npz")
    (rows / "rows.jsonl").unlink()
    (rows / "measurements.csv").write_text("kernel,gpu\n1,2\n")
    assert "row 1: lacks" in refused("fit", rows, "--out", "x.npz")
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK\x03\x04 nothing")
    assert "is not a hardware profile" in refused("plot", broken, "--out", "plots")
    assert "none.npz: no such file; check the path" in refused("plot", "none.npz", "--out", "plots")
    assert "no profile 'none'; choose one of" in refused("plot", "none", "--out", "plots")
    Path("mine-dry-run.npz").write_text("")
    Path("main.npz").write_text("")
    said = refused("plot", "mine.npz", "--out", "plots")
    assert said == "error: mine.npz: no such file; did you mean 'mine-dry-run.npz'?\n"
    assert "did you mean 'main.npz'" in refused("plot", "mian.npz", "--out", "plots")
    csv = measured / "measurements.csv"
    before = csv.read_bytes()
    assert "would replace the input" in refused("fit", measured, "--out", csv)
    assert csv.read_bytes() == before
    assert "is a file, not a folder" in refused("plot", measured, "--out", csv)


def test_rows_of_an_unknown_gpu_alone_are_refused(refused, measured, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    text = (measured / "measurements.csv").read_text().replace("h200_sxm", "rtx_3090")
    (copy / "measurements.csv").write_text(text)
    assert "nothing is known of the GPU rtx_3090" in refused("fit", copy, "--out", "p.npz")


def test_measure_refuses_what_it_cannot_do(refused, tmp_path):
    assert "unknown GPU 'h200'" in refused("measure", "--dry-run", "--as", "h200", "--out", "m")
    (tmp_path / "file").write_text("")
    assert "is a file, not a folder" in refused("measure", "--dry-run", "--out", "file")
    assert "--minutes" in refused("measure", "--minutes", "0", "--out", "m")
    assert sorted(GPUS)  # the table of --as


def test_facts_of_another_gpu_than_the_rows_are_refused(refused, measured, tmp_path):
    copied = tmp_path / "copied"
    copied.mkdir()
    rows = (measured / "measurements.csv").read_text()
    (copied / "measure.json").write_bytes((measured / "measure.json").read_bytes())
    for other in ("a100_sxm", "gpu_of_my_own"):
        (copied / "measurements.csv").write_text(rows.replace("h200_sxm", other))
        assert f"rows of {other}" in refused("fit", copied, "--out", tmp_path / "p.npz")


@pytest.mark.parametrize("seconds", ["1e300", "1e-320", "3601"])
def test_seconds_that_no_launch_takes_are_refused(refused, measured, tmp_path, seconds):
    lines = (measured / "measurements.csv").read_text().splitlines()
    cells = lines[1].split(",")
    cells[1:3] = [seconds, seconds]
    (tmp_path / "rows").mkdir()
    text = "\n".join([lines[0], ",".join(cells), *lines[2:]])
    (tmp_path / "rows" / "measurements.csv").write_text(text)
    said = refused("fit", tmp_path / "rows", "--out", tmp_path / "p.npz")
    assert "row 1, column seconds_median" in said


def test_seconds_in_another_unit_are_refused(tmp_path, capsys):
    write(tmp_path / "rows", session(), some_items(40), slower=1e4)
    assert run(app, ["fit", str(tmp_path / "rows"), "--out", str(tmp_path / "p.npz")]) == 2
    said = capsys.readouterr().err
    assert "times the memory bandwidth of h200_sxm; check that the times are seconds" in said
    assert not (tmp_path / "p.npz").exists()
