"""`twin memory`: what it refuses."""

import pytest

from tests.unit.cli.refused.one_line import assert_one_line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("memory",), "--claims"),
        (("memory", "chat-h10"), "did you mean 'chat-h100'?"),
        (("memory", "chat-h100", "--out", "kv.png"), ".html or .svg"),
        (("memory", "chat-h100", "--out", "no/kv.svg"), "folder does not exist"),
        (("memory", "--claims", "--out", "kv.svg"), "does not go with --out"),
        (("memory", "chat-h100", "--set", "kv_layout.pools=layers"), "kv_layout.pools"),
    ],
)
def test_bad_arguments(twin, arguments, says):
    assert_one_line(twin(*arguments), says)
