"""`twin conformance`: what it refuses."""

import json

import pytest

from tests.unit.cli.refused.one_line import assert_one_line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("conformance", "none.json"), "none.json"),
    ],
)
def test_bad_arguments(twin, arguments, says):
    assert_one_line(twin(*arguments), says)


def test_a_conformance_file_that_is_something_else(twin, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps({"hello": 1}))
    assert_one_line(twin("conformance", "c.json"), "c.json")


def test_a_folder_of_recordings(twin, tmp_path):
    assert_one_line(twin("conformance", str(tmp_path)), "is a folder; name the recordings in it")
