"""Words of others are text on screen, whatever Markdown would make of them."""

import pytest

from app.parts.words import plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![x](https://example.com/a.png)", r"!\[x\](https://example.com/a.png)"),
        ("[a](javascript:b)", r"\[a\](javascript:b)"),
        (r"\[a](b)", r"\\\[a\](b)"),
        ("$x$ <b> *y* _z_", r"\$x\$ \<b\> \*y\* \_z\_"),
        ("a.csv\n\n# big\r\n", r"a.csv \# big"),
        ("gpj\u202evsc.a\x00b", "gpj vsc.a b"),
        ("policy: 3.5 s, 99 %", "policy: 3.5 s, 99 %"),
    ],
)
def test_marks_are_shown_and_do_nothing(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_what_is_too_long_ends() -> None:
    assert len(plain("x" * 10_000)) == 600
    assert plain("x" * 10_000).endswith("…")
