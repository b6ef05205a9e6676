"""`twin search`: what it writes, and how it ends."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from twin.cli.app import app
from twin.cli.running import run
from twin.load import load_policy, load_scenario
from twin.search.output import FILES

ROOT = Path(__file__).resolve().parents[3]
SMALL = ("chat-h100", "--set", "workload.num_requests=40", "--set", "workload.arrivals.rate=30")


@pytest.fixture
def twin(capsys, tmp_path, monkeypatch):
    """Run `twin search` in an empty folder; returns (stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0):
        assert run(app, ["search", *arguments]) == code
        captured = capsys.readouterr()
        return captured.out, captured.err

    return call


def test_it_writes_its_files_and_the_scenario_among_them_runs(twin, tmp_path):
    out, err = twin(*SMALL, "--trials", "12", "--out", "o", "--seeds", "2", "--json", "s.json")
    assert err == ""
    assert "Report: o/report.html" in out
    assert {p.name for p in (tmp_path / "o").iterdir()} == {*FILES, "study.journal"}
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert summary == json.loads((tmp_path / "s.json").read_text())
    assert summary["counts"]["trials"] == 12
    rungs = summary["study"]["rungs"]
    assert summary["study"] | {"name": "", "rungs": []} == {
        "name": "", "sampler": "tpe", "seed": 0, "halving": any(rung["used"] for rung in rungs),
        "rungs": [], "population": None, "where": "o/study.journal",
    }  # fmt: skip
    assert [rung["share"] for rung in rungs] == [1 / 9, 1 / 3]
    recommended = load_scenario("o/scenario.yaml")
    assert recommended.file.policy == load_policy("o/policy.yaml")
    for key, value in summary["candidate"].items():
        node = yaml.safe_load((tmp_path / "o" / "scenario.yaml").read_text())
        for part in key.split("."):
            node = node[part]
        assert node == value
    trials = pq.read_table("o/trials.parquet")
    assert trials["trial"].to_pylist() == list(range(12))
    assert set(trials["state"].to_pylist()) <= {"complete", "pruned", "infeasible"}
    assert {"goodput_per_gpu_hour", "violation.ttft_s", "policy.max_num_seqs"} <= set(
        trials.column_names
    )
    assert trials["policy.max_num_seqs"][0].as_py() is None  # the first is the default


def test_the_same_command_again_gives_the_same_answer(twin, tmp_path):
    command = (*SMALL, "--trials", "8", "--seeds", "2", "-q", "--knob", "policy.max_num_seqs")
    twin(*command, "--out", "one")
    first = {name: (tmp_path / "one" / name).read_bytes() for name in FILES}
    journal = (tmp_path / "one" / "study.journal").read_bytes()
    twin(*command, "--out", "one")
    assert {name: (tmp_path / "one" / name).read_bytes() for name in FILES} == first
    assert (tmp_path / "one" / "study.journal").read_bytes() == journal


def test_parts_that_do_not_represent_the_traffic_are_told(twin, tmp_path):
    """Contexts of sessions grow: gaps on the first third are not those of the whole."""
    growing = ("agentic-sessions-h100", "--set", "workload.num_sessions=24")
    command = (*growing, "--objective", "p99_itl_s", "--seeds", "2", "--trials", "6")
    for option, words in (
        ((), "were not stopped early after"),
        (("--halving",), "as --halving asks"),
    ):
        out, _ = twin(*command, *option, "--out", "".join(option) or "o")
        summary = json.loads((tmp_path / ("".join(option) or "o") / "summary.json").read_text())
        assert summary["study"]["halving"] is bool(option)
        assert all(rung["off"] > 0.25 for rung in summary["study"]["rungs"])
        (note,) = [note for note in summary["notes"] if words in note]
        assert note in " ".join(out.split())
        assert note in (tmp_path / ("".join(option) or "o") / "report.html").read_text()


def test_another_problem_does_not_write_over_a_report(twin, tmp_path):
    """A database keeps both studies; the folder has room for one report."""
    command = (*SMALL, "--trials", "6", "--seeds", "2", "-q", "--knob", "policy.max_num_seqs")
    database = ("--storage", "sqlite:///s.db", "--out", "o")
    twin(*command, *database)
    first = (tmp_path / "o" / "summary.json").read_bytes()
    name = json.loads(first)["study"]["name"]
    twin(*command, *database)  # the same one may
    for other in (database, ("--out", "o")):
        _, err = twin(*command, "--seed", "1", *other, code=2)
        assert err == (
            f"error: o: holds the report of another search, {name}; name another --out, or "
            "delete its summary.json\n"
        )
    assert (tmp_path / "o" / "summary.json").read_bytes() == first
    assert not (tmp_path / "o" / "study.journal").exists()


def test_a_full_disk_names_the_journal(twin, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", full)
    _, err = twin(*SMALL, "--out", "o", "--trials", "6", code=2)
    assert err == "error: o/study.journal: No space left on device\n"


def test_a_full_disk_names_the_database(twin, monkeypatch):
    import sqlite3

    from sqlalchemy.engine.default import DefaultDialect

    execute = DefaultDialect.do_execute

    def full(self, cursor, statement, parameters, context=None):
        if statement.startswith("INSERT INTO trials"):
            raise sqlite3.OperationalError("database or disk is full")
        execute(self, cursor, statement, parameters, context)

    monkeypatch.setattr(DefaultDialect, "do_execute", full)
    _, err = twin(*SMALL, "--out", "o", "--trials", "6", "--storage", "sqlite:///s.db", code=1)
    assert err == (
        "error: --storage sqlite:///s.db: database or disk is full; trials that are finished are "
        "kept\n"
    )


def test_a_full_disk_names_the_journal_of_worker_processes(twin, tmp_path):
    """A file may grow no farther than it did when the study was made: the next write fails."""
    script = (
        "import resource, signal, sys\n"
        "from twin.search.study import coordinator\n"
        "from twin.cli import main\n"
        "run = coordinator.run_processes\n"
        "def full(plan, ledger, watch):\n"
        "    size = (plan.options.out / 'study.journal').stat().st_size + 100\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))\n"
        "    run(plan, ledger, watch)\n"
        "coordinator.run_processes = full\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "if __name__ == '__main__':\n"
        "    main()\n"
    )
    (tmp_path / "full.py").write_text(script)
    ended = subprocess.run(
        [sys.executable, "full.py", "search", *SMALL, "--out", "o", "--trials", "6",
         "--workers", "2"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1] == "error: o/study.journal: File too large"
    assert "Traceback" not in ended.stderr


def test_where_nothing_fits_the_closest_is_named_and_the_code_is_1(twin, tmp_path):
    impossible = ("--set", "slo.ttft_s=0.0001", "--trials", "7", "--out", "o")
    out, _ = twin(*SMALL, *impossible, code=1)
    told = " ".join(out.split())
    assert "No candidate keeps the constraints; the closest (" in told
    summary = json.loads((tmp_path / "o" / "summary.json").read_text())
    assert summary["decision"] == "nothing keeps the constraints"
    assert {p.name for p in (tmp_path / "o").iterdir()} == {"study.journal", *FILES}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--seeds", "1"), "--seeds: 1 is too few for an interval; give 2 or more"),
        (("--sampler", "tpe2"), "unknown sampler 'tpe2'; did you mean 'tpe'?"),
        (("--objective", "p99"), "unknown objective 'p99'"),
        (("--engine", "sglang"), "what sglang can do is asked for"),
        (("--gpus", "0"), "a budget of 0 GPUs; give at least 1"),
        (("--storage", "nowhere"), "--storage nowhere: is no URL"),
        (
            ("--objective", "p99_ttft_s", "--objective", "p99_itl_s", "--halving"),
            "--halving: goes with one objective only",
        ),
    ],
)
def test_bad_input_is_one_line_and_code_2(twin, tmp_path, arguments, message):
    _, err = twin(*SMALL, "--out", "o", *arguments, code=2)
    assert message in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_ray_that_is_not_installed_is_one_line(twin, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    _, err = twin(*SMALL, "--out", "o", "--trials", "6", "--ray", "auto", code=2)
    assert err == "error: --ray: ray is not installed; pip install -e '.[distributed]'\n"


def test_a_password_does_not_reach_the_report(monkeypatch):
    from twin.cli.search import _command

    words = ["search", "s.yaml", "--storage", "postgresql://me:secret@host/db"]
    monkeypatch.setattr(sys, "argv", ["twin", *words])
    assert _command() == "twin search s.yaml --storage 'postgresql://me:***@host/db'"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_what_is_done_and_says_how_to_go_on(tmp_path, number, code):
    command = [
        sys.executable, "-c", "from twin.cli import main; main()", "search", *SMALL,
        "--trials", "3000", "--no-halving", "-q", "--out", str(tmp_path / "o"),
    ]  # fmt: skip
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A parent that ignores SIGINT, as shells make background jobs do, would hand that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    journal, deadline = tmp_path / "o" / "study.journal", time.monotonic() + 60
    while not (journal.exists() and b'"state":1' in journal.read_bytes()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert out == b""
    words = err.decode()
    assert words.startswith("error: stopped after ")
    assert words.endswith("study.journal keeps; the same command goes on from there\n")
    assert words.count("\n") == 1
    assert [p.name for p in (tmp_path / "o").iterdir()] == ["study.journal"]
