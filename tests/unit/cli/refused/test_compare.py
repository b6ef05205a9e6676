"""`twin compare`: what it refuses."""

from pathlib import Path

import pytest

from tests.unit.cli.refused.one_line import assert_one_line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("compare", "none", "chat-h100"), "none"),
    ],
)
def test_bad_arguments(twin, arguments, says):
    assert_one_line(twin(*arguments), says)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a result"),
        ('{"inputs": {}}', "no figures"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_bad_results_to_compare(twin, tmp_path, content, says):
    (tmp_path / "r.json").write_text(content)
    assert_one_line(twin("compare", "r.json", "r.json"), "r.json", says)


@pytest.mark.parametrize("number", ["NaN", "1e999", "9" * 400])
def test_a_result_with_a_number_beyond_floats(twin, number):
    Path("r.json").write_text('{"inputs": {}, "ttft_s": {"p50": ' + number + "}}")
    assert_one_line(twin("compare", "r.json", "r.json"), "r.json: is not valid JSON", "finite")
