"""Pages are tested without processes of their own, but where a test asks for one."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import math

    from app.parts import results

    monkeypatch.setattr(results, "AT_ONCE_S", math.inf)
    monkeypatch.setattr(results, "GIVE_UP_S", math.inf)


@pytest.fixture(autouse=True)
def _main_module_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page under test takes the place of `__main__`, which spawned processes would run again."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
