"""`scripts/gpu_check.sh`: its budget, its table, its exit code; and its dry run."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer.main

from calibrate.cli import app

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "scripts" / "gpu_check"
sys.path.insert(0, str(FOLDER))

import check as gpu_check  # noqa: E402
import modules  # noqa: E402
import table  # noqa: E402
from folder import claim  # noqa: E402
from table import CUT, FAILED, KEPT, MISSED, OPEN, PRETENDED, RAN, Outcome  # noqa: E402

RAN_ALL = dict.fromkeys(
    ("kernels", "measure", "fit", "plot", "validate-a", "validate-b"), Outcome(RAN, 1.0)
)
PYTHON = [sys.executable, "-c"]


def check_in(out, budget_s=100.0, missing=()):
    return gpu_check.Check(out, False, frozenset(missing), budget_s, environment=dict(os.environ))


def step(name, code="pass", limit_s=20.0, least_s=1.0, **more):
    return gpu_check.Step(name, lambda _: [[*PYTHON, code]], limit_s, least_s, **more)


def test_steps_run_and_say_why_they_fail(tmp_path):
    check = check_in(tmp_path, missing=("simpy",))
    check.run(
        [
            step("good", "print('rows')"),
            step("bad", "import sys; sys.exit('it broke')"),
            step("after", after=("bad",)),
            step("lacking", needs=("simpy", "numpy")),
        ]
    )
    assert check.outcomes["good"].status == RAN
    assert (tmp_path / "good.0.out").read_text() == "rows\n"
    assert check.outcomes["bad"].status == FAILED
    assert check.outcomes["bad"].reason == "exit code 1: it broke"
    assert check.outcomes["after"].reason == "bad did not run"
    assert check.outcomes["lacking"].reason == "lacks simpy"


def test_a_step_is_stopped_at_its_limit_and_one_that_would_not_fit_is_cut(tmp_path):
    check = check_in(tmp_path, budget_s=24.0)
    passed = iter([0.0, 1.0] + [8.0] * 100)  # after the first step more time has gone by
    check.clock = lambda: check._started_s + next(passed)
    check.run(
        [
            step("slow", "import time; time.sleep(60)", limit_s=1.0),
            step("large", limit_s=50, least_s=20),
            step("small"),
        ]
    )
    slow = check.outcomes["slow"]
    assert (slow.status, slow.reason) == (CUT, "stopped after 7 s")
    assert check.outcomes["large"].status == CUT
    assert "it needs 20" in check.outcomes["large"].reason
    assert check.outcomes["small"].status == RAN


def test_what_later_steps_need_is_kept_for_them(tmp_path):
    rooms = []

    def commands(room_s):
        rooms.append(room_s)
        return [[*PYTHON, "pass"]]

    first = gpu_check.Step("first", commands, 90, 1)
    check_in(tmp_path, budget_s=50.0).run([first, step("later", least_s=15)])
    assert rooms[0] == pytest.approx(35, abs=1)


def test_all_steps_together_fit_nine_minutes(tmp_path):
    steps = gpu_check.steps_of(check_in(tmp_path), seed=1)
    assert [one.name for one in steps[:4]] == ["kernels", "measure", "fit", "plot"]
    assert len(steps) == 6
    assert sum(one.least_s for one in steps) < gpu_check.BUDGET_S < 540
    (measure,) = steps[1].commands(255)
    assert measure[-2:] == ["--minutes", "4.00"]
    assert steps[1].commands(135)[0][-1] == "2.00"


def test_a_scenario_is_put_on_the_gpu_that_was_measured(tmp_path):
    from twin.load import load_policy, read_scenario_file

    for name in gpu_check.POLICIES:
        policy, scenario = gpu_check.place_policy(tmp_path, name, "a100_sxm")
        assert load_policy(policy).max_model_len == 16384
        assert read_scenario_file(scenario)[0].gpu == "a100_sxm"


def rows(out, *cases):
    base = {"kernel": "rms_norm", "dtype": "float16", "tolerance": 1e-3, "reason": ""}
    lines = [json.dumps({**base, **case}) for case in cases]
    (out / "kernels.0.out").write_text("\n".join([*lines, json.dumps({"summary": {}})]))


GOOD = {"status": "ok", "error": 2.5e-4}
HELD = {"median_pct": 2.0, "p90_pct": 8.0, "rows": 90}
BAR = {"median_pct": 4.0, "p90_pct": 12.0}


def results(out, passes=True, share=0.9, verdict="validated"):
    rows(out, GOOD, {"status": "skip"})
    families = {
        "gemm": {"held_out": HELD, "bar": BAR, "passes": passes},
        "decode int8": {"held_out": None, "bar": BAR, "passes": None},
        "experts": {"held_out": HELD, "bar": None, "passes": None},
    }
    paged = {"share_of_copy": share, "rows": 6, "bar": 0.85, "passes": share >= 0.85}
    (out / "fit.json").write_text(json.dumps({"families": families, "paged_decode": paged}))
    told = {"verdict": verdict, "bias_interval_pct": [-1.0, 2.0]}
    told["overall"] = {"median_pct": 2.5, "steps": 24}
    for name in ("a", "b"):
        (out / f"validate-{name}.json").write_text(json.dumps(told))


def states(out, outcomes=RAN_ALL, dry_run=False):
    lines = table.lines_of(out, outcomes, ("a", "b"), dry_run=dry_run)
    return {line.what: line.state for line in lines}


def test_every_bar_has_a_line(tmp_path):
    results(tmp_path)
    assert states(tmp_path) == {
        "kernels against oracles": KEPT,
        "held-out gemm": KEPT,
        "held-out decode int8": OPEN,
        "paged decode over 256 MB": KEPT,
        "validated a": KEPT,
        "validated b": KEPT,
    }
    lines = table.lines_of(tmp_path, RAN_ALL, ("a", "b"), dry_run=False)
    text = table.text_of(lines, RAN_ALL, 500.4, dry_run=False)
    assert "1 cases, 0 failed; worst error 25% of tolerance (rms_norm float16)" in text
    assert "2.0 / 8.0 % of 90 rows" in text
    assert "90% of copy, 6 rows" in text
    assert "seconds: 500 in all; kernels 1" in text


@pytest.mark.parametrize(
    ("given", "missed"),
    [
        ({"passes": False}, {"held-out gemm"}),
        ({"share": 0.84}, {"paged decode over 256 MB"}),
        ({"verdict": "not validated"}, {"validated a", "validated b"}),
        ({"verdict": "pretended"}, {"validated a", "validated b"}),
    ],
)
def test_a_bar_that_is_missed_is_told(tmp_path, given, missed):
    results(tmp_path, **given)
    assert {what for what, state in states(tmp_path).items() if state == MISSED} == missed


def test_one_failed_kernel_is_a_miss(tmp_path):
    results(tmp_path)
    rows(tmp_path, GOOD, {"status": "FAIL", "error": None, "reason": "it broke"})
    assert states(tmp_path)["kernels against oracles"] == MISSED
    rows(tmp_path)
    assert states(tmp_path)["kernels against oracles"] == MISSED  # nothing was checked


def test_what_did_not_run_is_missed_even_if_old_results_lie_there(tmp_path):
    results(tmp_path)
    cut = dict.fromkeys(RAN_ALL, Outcome(CUT, 1.0, "stopped"))
    found = states(tmp_path, cut)
    assert set(found.values()) == {MISSED}
    assert {"measure", "plot"} <= set(found)


def test_a_dry_run_pretends_every_bar_but_the_kernels(tmp_path):
    results(tmp_path, passes=False, share=0.1, verdict="pretended")
    found = states(tmp_path, dry_run=True)
    assert found.pop("kernels against oracles") == KEPT
    assert set(found.values()) == {PRETENDED}


def test_modules_that_are_missing_come_from_the_wheels(tmp_path, monkeypatch):
    calls = []
    lacking = iter([["simpy", "mdurl"], ["mdurl"]])
    monkeypatch.setattr(modules, "_missing", lambda _: next(lacking))
    monkeypatch.setattr(modules.subprocess, "run", lambda command, **_: calls.append(command))
    for name in ("simpy-4.1.1-py3-none-any.whl", "simpy-4.1.2-py3-none-any.whl", "other-1.whl"):
        (tmp_path / name).touch()
    assert modules.provide(tmp_path, {"SERVETWIN_WHEELS": str(tmp_path)}) == []
    assert [Path(word).name for word in calls[0][-1:]] == ["simpy-4.1.2-py3-none-any.whl"]
    assert {"--no-index", "--no-deps"} < set(calls[0])


def test_without_wheels_it_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(modules, "_missing", lambda _: ["simpy", "mdurl"])
    assert modules.provide(tmp_path, {}) == ["simpy"]


def _whole() -> bool:
    commands = typer.main.get_command(app).commands
    return {"measure", "fit", "plot", "validate"} <= set(commands) and all(
        find_spec(name) is not None for name in ("torch", "triton", "scipy")
    )


@pytest.mark.skipif(not _whole(), reason="needs torch, triton, scipy and twin-calibrate measure")
def test_the_dry_run_goes_through(tmp_path):
    environment = {**os.environ, "OUT": str(tmp_path / "out"), "PYTHON": sys.executable}
    command = ["sh", str(ROOT / "scripts" / "gpu_check.sh"), "--dry-run", "--seed", "3"]
    told = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "DRY RUN: only the kernels were checked" in told.stdout
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["dry_run"]
    assert not summary["green"]
    assert {outcome["status"] for outcome in summary["steps"].values()} == {RAN}
    assert (tmp_path / "out" / "llama-8b.validation-dry-run.json").exists()


def test_a_folder_with_files_of_others_is_left_alone(tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "server.log").write_text("mine")
    assert "holds files that no check wrote" in claim(tmp_path)
    assert (tmp_path / "server.log").read_text() == "mine"
    assert (tmp_path / "rows").is_dir()


def test_a_folder_of_an_earlier_check_is_emptied_of_it(tmp_path):
    out = tmp_path / "out"
    assert claim(out) == ""
    (out / "fit.json").write_text("{}")
    (out / "notes.txt").write_text("mine")
    assert claim(out) == ""
    assert not (out / "fit.json").exists()
    assert (out / "notes.txt").exists()


def test_without_a_gpu_or_a_module_nothing_is_begun(tmp_path, monkeypatch, capsys):
    out = tmp_path / "out"
    assert claim(out) == ""
    (out / "fit.json").write_text("{}")
    monkeypatch.setenv("OUT", str(out))
    monkeypatch.setattr(modules, "_missing", lambda _: [])
    monkeypatch.setattr(modules, "_SEES", "raise SystemExit(1)")
    assert gpu_check.main([]) == 2
    assert "PyTorch sees no CUDA GPU" in capsys.readouterr().err
    monkeypatch.setattr(modules, "_missing", lambda _: ["scipy", "mdurl"])
    assert gpu_check.main(["--dry-run"]) == 2
    said = capsys.readouterr().err
    assert f"{sys.executable} lacks scipy; name another interpreter in PYTHON" in said
    assert said.count("\n") == 1
    assert (out / "fit.json").exists()


def test_modules_with_a_wheel_are_not_lacking(tmp_path, monkeypatch):
    monkeypatch.setattr(modules, "_missing", lambda _: ["scipy", "simpy"])
    (tmp_path / "simpy-4.1.1-py3-none-any.whl").touch()
    assert modules.lacking({"SERVETWIN_WHEELS": str(tmp_path)}) == ["scipy"]


def test_a_file_in_place_of_the_folder_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OUT", str(tmp_path / "file"))
    assert gpu_check.main(["--dry-run"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
