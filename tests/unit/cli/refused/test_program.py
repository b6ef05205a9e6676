"""The program itself: unknown commands, no command, closed streams, ctrl-C."""

import io

import pytest
import typer

from tests.unit.cli.refused.one_line import assert_one_line
from twin.cli.app import app
from twin.cli.running import run


def test_an_unknown_command(twin):
    assert_one_line(twin("nonsense"), "nonsense")


def test_no_command_prints_the_help(twin):
    code, _, err = twin()
    assert code == 2
    assert err.startswith("Usage: ")
    assert err.count("\n") > 5


def test_closed_streams_and_narrow_alphabets(twin, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    assert run(app, ["models"]) == 0
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", narrow)
    assert run(app, ["models"]) == 0
    monkeypatch.setenv("COLUMNS", "0")
    before = narrow.buffer.tell()
    assert run(app, ["models"]) == 0
    assert narrow.buffer.tell() > before


def test_ctrl_c_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    interrupted = typer.Typer()

    @interrupted.command()
    def work() -> None:
        raise KeyboardInterrupt

    assert run(interrupted, []) == 130
    assert capsys.readouterr().err == "error: stopped\n"
