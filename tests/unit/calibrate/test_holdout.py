import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "hwmodels"))
from aiconfigurator_tables import GPU, folder
from measured_profile import profile
from typer.testing import CliRunner

from calibrate.cli import app
from calibrate.collective_lines import fit_lines
from calibrate.holdout import FAMILIES, held_out_errors, without_random_rows
from hwmodels.measured.held_out import held_rows
from hwmodels.profile import read_profile, write_profile

SEED = 5
_HELD = {"gemm": ("gemm.bf16", 3), "decode": ("decode.128.bf16", 4)}


def test_tables_that_are_a_multiple_of_physics_are_predicted_exactly() -> None:
    errors = held_out_errors(profile(1.7), SEED)
    assert set(errors) >= {"gemm", "prefill", "decode"}
    for family in ("gemm", "gemm, unseen m", "prefill", "decode"):
        assert errors[family].p90_pct == pytest.approx(0.0, abs=0.1)
        assert errors[family].seed == SEED


@pytest.mark.parametrize("family", sorted(_HELD))
def test_held_out_rows_are_not_seen(family: str) -> None:
    """Make the held-out rows three times as slow: predictions must stay, so the error is 2/3."""
    name, _ = _HELD[family]
    whole = profile(1.0)
    table = dict(whole.tables[name])
    held = held_rows(name, table, (), SEED)
    table["seconds"] = np.where(held, 3 * table["seconds"], table["seconds"])
    spoiled = replace(whole, tables={**whole.tables, name: table})
    assert held_out_errors(spoiled, SEED)[family].median_pct == pytest.approx(200 / 3, abs=0.1)


def test_noise_of_the_rows_comes_back_as_error() -> None:
    whole, random = profile(1.0), np.random.default_rng(3)
    table = dict(whole.tables["prefill.128.bf16"])
    table["seconds"] = table["seconds"] * np.exp(random.normal(0, 0.1, len(table["seconds"])))
    noisy = replace(whole, tables={**whole.tables, "prefill.128.bf16": table})
    # A normal error of 0.1 has a median of 6.7 %, and its neighbours' noise comes on top.
    assert 4 < held_out_errors(noisy, SEED)["prefill"].median_pct < 14


def test_a_fifth_is_held_out_and_whole_groups_go_together() -> None:
    rng = np.random.default_rng(0)
    table = {name: rng.integers(1, 60, 20000) for name in ("m", "n", "k")}
    table["seconds"] = np.ones(20000)
    assert held_rows("gemm.bf16", table, (), SEED).mean() == pytest.approx(0.2, abs=0.01)
    held = held_rows("gemm.bf16", table, ("m",), SEED)
    assert {len(set(held[table["m"] == m].tolist())) for m in range(1, 60)} == {1}


def test_training_rows_are_the_rest() -> None:
    whole = profile()
    training = without_random_rows(whole, SEED)
    for name, table in whole.tables.items():
        held = int(held_rows(name, table, (), SEED).sum())
        assert len(training.tables[name]["seconds"]) == len(table["seconds"]) - held


def test_families_have_one_name_each() -> None:
    names = [family.name for family in FAMILIES]
    assert len(set(names)) == len(names)


def test_three_lines_are_found_again_despite_an_outlier() -> None:
    sizes = 2.0 ** np.arange(9, 30)
    lines = [(6.0, 10.0), (8.0, 130.0), (25.0, 300.0)]
    micros = np.min([a + sizes / (bw * 1e3) for a, bw in lines], axis=0)
    micros[10] *= 1.6
    table = {"ranks": np.full(21, 2), "bytes": sizes, "seconds": micros * 1e-6}
    found = fit_lines(table, 2)
    predicted = np.min([a + sizes / (bw * 1e3) for a, bw in found], axis=0)
    clean = np.delete(np.abs(predicted / micros - 1), 10)
    assert np.median(clean) < 0.01
    assert clean.max() < 0.08


def test_the_commands_import_and_judge(tmp_path: Path) -> None:
    out, runner = tmp_path / "p.npz", CliRunner()
    source = ["import", "aiconfigurator", str(folder(tmp_path)), "--gpu", GPU, "--no-fit"]
    result = runner.invoke(app, [*source, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "h100_sxm-vllm-0.24.0" in result.output
    assert read_profile(out).gpu == GPU
    judged = tmp_path / "judged.npz"
    judged.write_bytes(write_profile(profile()))
    result = runner.invoke(app, ["holdout", str(judged), "--seed", "5", "--json", "-"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["profile"] == "h100_sxm-vllm-0.0.1"
    assert answer["held_out"]["gemm"]["seed"] == 5


def test_unknown_names_get_an_answer() -> None:
    runner = CliRunner()
    for command in (
        ["holdout", "h100_sxm-vllm-0.24.1"],
        ["import", "aiconfig", ".", "--gpu", GPU, "--out", "x.npz"],
        ["import", "aiconfigurator", ".", "--gpu", "h100_sx", "--out", "x.npz"],
    ):
        result = runner.invoke(app, command)
        assert result.exit_code != 0
        assert "did you mean" in str(result.exception)
