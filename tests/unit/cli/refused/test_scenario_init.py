"""`twin scenario init`: what it refuses."""

import pytest

from tests.unit.cli.refused.one_line import assert_one_line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("scenario", "init", "s.yaml", "--example", "chat"), "--example"),
        (("scenario", "init", "no/dir/s.yaml"), "no/dir"),
    ],
)
def test_bad_arguments(twin, arguments, says):
    assert_one_line(twin(*arguments), says)


def test_scenario_init_does_not_overwrite(twin, tmp_path):
    (tmp_path / "s.yaml").write_text("mine")
    assert_one_line(twin("scenario", "init", "s.yaml"), "exists already", "--force")
    assert (tmp_path / "s.yaml").read_text() == "mine"
