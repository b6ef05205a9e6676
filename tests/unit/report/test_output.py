import json

import pytest
import yaml

from tests.unit.report.synthetic import toy_result
from twin.errors import InputError
from twin.report import output
from twin.report.metrics import summarise
from twin.report.output import FILES, write_outputs


@pytest.fixture(scope="module")
def run():
    result = toy_result()
    return result, summarise(result)


def test_every_file_is_there_and_nothing_else(run, tmp_path):
    result, summary = run
    paths = write_outputs(result, summary, tmp_path / "new" / "out")
    assert [path.name for path in paths] == list(FILES)
    assert all(path.stat().st_size > 0 for path in paths)
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["out"]
    assert {p.name for p in (tmp_path / "new" / "out").iterdir()} == set(FILES)
    data = json.loads(paths[0].read_text())
    assert data["requests"] == 40
    assert data["inputs"]["gpu"] == "h100_sxm"
    assert yaml.safe_load(paths[-1].read_text())["seed"] == 7


def test_an_existing_folder_keeps_what_is_not_ours(run, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "summary.json").write_text("old")
    write_outputs(*run, tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert json.loads((tmp_path / "summary.json").read_text())["requests"] == 40


def test_a_file_in_its_place_is_refused(run, tmp_path):
    target = tmp_path / "out"
    target.write_text("a file")
    with pytest.raises(InputError, match="is a file, not a folder"):
        write_outputs(*run, target)
    assert target.read_text() == "a file"


def test_a_failure_leaves_nothing_behind(run, tmp_path, monkeypatch):
    def fail(result):
        raise RuntimeError("disk on fire")

    monkeypatch.setattr(output, "prometheus_text", fail)
    with pytest.raises(RuntimeError, match="disk on fire"):
        write_outputs(*run, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_equal_runs_give_equal_bytes(run, tmp_path):
    one = write_outputs(*run, tmp_path / "one")
    other = write_outputs(*run, tmp_path / "other")
    for left, right in zip(one, other, strict=True):
        assert left.read_bytes() == right.read_bytes(), left.name
