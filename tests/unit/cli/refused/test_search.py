"""`twin search`: what it does not replace."""

from pathlib import Path

import pytest

from twin.cli.app import app
from twin.cli.running import run


@pytest.mark.parametrize("name", ["study.journal", "summary.json"])
def test_figures_do_not_replace_a_file_of_the_search(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    command = ["search", "chat-h100", "--out", str(tmp_path), "--json", str(tmp_path / name)]
    assert run(app, [*command, "--trials", "2", "--set", "workload.num_requests=9", "-q"]) == 2
    assert (tmp_path / name).read_text() == ""
