"""Folders of studies that somebody else wrote to, and disks that are full: one line each."""

import errno
import json
from pathlib import Path

import pytest

from app.answers.search.order import Order, Wanted, read_order
from app.answers.search.studies import HOME, home, new_study
from app.answers.setup import Setup
from twin.errors import InputError


@pytest.mark.parametrize(
    "order",
    [[], 1, {}, {"setup": 1, "wanted": 2}, {"setup": {"private": []}, "wanted": {}}],
)
def test_an_order_that_was_tampered_with_is_one_line(tmp_path: Path, order: object) -> None:
    (tmp_path / "order.json").write_text(json.dumps(order))
    with pytest.raises(InputError, match="this study: cannot be read"):
        read_order(tmp_path)


def test_a_study_that_does_not_fit_the_disk_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(order: Order, folder: Path) -> None:
        (folder / "input").mkdir()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setenv(HOME, str(tmp_path))
    monkeypatch.setattr(Order, "write", full)
    with pytest.raises(InputError, match="studies cannot be kept: No space left"):
        new_study(Order(Setup("chat-h100"), Wanted()))
    assert not list(home().iterdir())
