"""`twin-calibrate` on bad input: one line, exit 2, and no input is ever replaced."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from calibrate.cli import app
from twin.cli.running import run

sys.path.insert(0, str(Path(__file__).parent))
from aiconfigurator_tables import GPU, folder

HEAD = (
    "id,gpu,engine,engine_version,model,precision,gemm_quant,isl,osl,concurrency,tp,pp,"
    "attention_dp,moe_tp,moe_ep,lengths,ttft_ms,tpot_ms"
)
ROW = "r{},h200_sxm,vllm,0.16.0,meta-llama/Llama-3.1-8B,,,256,{},4,1,1,1,1,1,exact,20,9"


@pytest.fixture
def calibrate(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder that must be refused; return the line it says."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = run(app, [str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert (code, captured.out, captured.err.count("\n")) == (2, "", 1), captured
        assert "Traceback" not in captured.err
        return captured.err

    return call


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([HEAD, ROW.format(1, 8), ROW.format(2, 1)]) + "\n")
    return path


@pytest.fixture
def recorded(data_dir, tmp_path):
    """A copy of a recorded run."""
    source = data_dir / "vllm_runs" / "rtx4090-llama-3.1-8b"
    run_folder = tmp_path / "run"
    shutil.copytree(source, run_folder, ignore=shutil.ignore_patterns("timeseries.csv"))
    return run_folder


@pytest.mark.parametrize("name", ["trace.jsonl", "requests.jsonl", "layer_profile/meta.yaml"])
def test_replay_keeps_its_run(calibrate, recorded, name):
    before = (recorded / name).read_bytes()
    assert "would replace the input" in calibrate("replay", recorded, "--json", recorded / name)
    assert (recorded / name).read_bytes() == before


def test_import_layers_keeps_its_tables(calibrate, recorded):
    layers = recorded / "layer_profile"
    out = next(layers.rglob("dense.csv"))
    assert "would replace the input" in calibrate("import-layers", layers, "--out", out)


def test_import_keeps_its_input_and_checks_the_output_first(calibrate, tmp_path):
    rows = tmp_path / "m.csv"
    rows.write_text("kernel\n")
    asked = ("import", "measurements", rows, "--gpu", "h100_sxm", "--out")
    assert "would replace the input" in calibrate(*asked, rows)
    assert "its folder does not exist" in calibrate(*asked, tmp_path / "no" / "p.npz")
    assert rows.read_text() == "kernel\n"


def test_holdout_keeps_its_profile(calibrate, tmp_path):
    from hwmodels.profile import FOLDER

    own = tmp_path / "p.npz"
    own.write_bytes((FOLDER / "a100_sxm-vllm-0.14.0.npz").read_bytes())
    assert "would replace the input" in calibrate("holdout", own, "--json", own)
    assert "--seed" in calibrate("holdout", own, "--seed", "-5")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--json", "rows.csv"), "would replace the input"),
        (("--html", "-"), "--html -: standard output is for --json"),
        (("--markdown", "-"), "--markdown -: standard output is for --json"),
        (("--html", "x", "--markdown", "x"), "--markdown x: --html writes there too"),
        (("--html", "x", "--json", "./x"), "--html x: --json writes there too"),
        (("--plots", "rows.csv"), "--plots rows.csv: is a file, not a folder"),
        (("--fit", "--html", "x"), "--fit: does not go with --html"),
        (("--fit", "--halves"), "--fit: does not go with --halves"),
        (("--ablation", "--json", "-"), "--ablation: does not go with --json"),
        (("--ablation", "--halves"), "--ablation: does not go with --halves"),
        (("--halves", "--plots", "x"), "--halves: does not go with --plots"),
        (("--fit",), "--fit: no row of networks with experts"),
        (("--halves",), "--halves: no group that was fitted on"),
    ],
)
def test_accuracy_options(calibrate, table, options, says):
    assert says in calibrate("accuracy", table, *options)


def test_accuracy_takes_a_table_once(calibrate, table):
    assert "id 'r1' stands in" in calibrate("accuracy", table, table)


def test_capacity_keeps_its_table(calibrate, table):
    for option in ("--json", "--markdown"):
        assert "would replace the input" in calibrate("capacity", table, option, table)
    assert "does not go with --json" in calibrate("capacity", table, "--fit", "--json", "x")


def test_plots_of_dense_rows_alone_and_answers_of_one_token(table, tmp_path):
    plots, out = tmp_path / "plots", tmp_path / "a.json"
    code = run(app, ["accuracy", str(table), "--plots", str(plots), "--json", str(out)])
    assert code == 0
    names = sorted(path.name for path in plots.iterdir())
    assert names == ["accuracy-tpot-dense.svg", "accuracy-ttft-dense.svg"]
    long, short = json.loads(out.read_text())["points"]
    assert long["fitted_tpot_ms"] > 0
    assert short["tpot_ms"] is short["fitted_tpot_ms"] is None
    assert short["fitted_ttft_ms"] > 0


def test_a_version_that_is_none_and_several_releases(calibrate, tmp_path):
    for release in ("one", "two"):
        folder(tmp_path / release)
    asked = ("import", "aiconfigurator", tmp_path, "--gpu", GPU, "--out", "p.npz", "--no-fit")
    assert "holds 2 releases" in calibrate(*asked)
    assert "'zzz' is not a version" in calibrate(*asked, "--version", "zzz")


def test_a_profile_with_nothing_to_judge_says_so(tmp_path, capsys):
    from dataclasses import replace

    from hwmodels.profile import FOLDER, open_profile, write_profile

    whole = open_profile(FOLDER / "a100_sxm-vllm-0.14.0.npz")
    few = {name: column[:10] for name, column in whole.tables["gemm.bf16"].items()}
    path = tmp_path / "p.npz"
    path.write_bytes(write_profile(replace(whole, tables={"gemm.bf16": few})))
    assert run(app, ["holdout", str(path)]) == 0
    assert "nothing to judge" in capsys.readouterr().out
