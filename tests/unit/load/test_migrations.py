import pytest

from twin.errors import InputError
from twin.load.migrations import migrate, migrate_policy, migrate_scenario


def test_current_version_passes_unchanged():
    data = {"schema_version": 1, "llm": "x"}
    assert migrate_scenario(data, "s.yaml") == data
    assert migrate_policy(data, "p.yaml") == data


def test_older_files_are_brought_up_step_by_step():
    steps = {
        1: lambda d: {k.replace("device", "gpu"): v for k, v in d.items()},
        2: lambda d: {**d, "seed": 0},
    }
    old = {"schema_version": 1, "device": "h100_sxm"}
    assert migrate(dict(old), 3, steps, "s.yaml") == {
        "schema_version": 3,
        "gpu": "h100_sxm",
        "seed": 0,
    }


@pytest.mark.parametrize(
    ("version", "says"),
    [
        (None, "schema_version is missing; add `schema_version: 1`"),
        (2, "newer than this program reads"),
        (0, "not a whole number from 1"),
        ("1", "not a whole number"),
        (True, "not a whole number"),
        (1.0, "not a whole number"),
    ],
)
def test_other_versions_are_refused(version, says):
    data = {} if version is None else {"schema_version": version}
    with pytest.raises(InputError, match=says):
        migrate_scenario(data, "s.yaml")
