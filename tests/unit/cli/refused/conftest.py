"""What tests of refusals share."""

import pytest

from twin.cli.app import app
from twin.cli.running import run


@pytest.fixture
def twin(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; return (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = run(app, list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
