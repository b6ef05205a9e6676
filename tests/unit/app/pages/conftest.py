"""Pages are tested without processes of their own, but where a test asks for one."""

import pytest


@pytest.fixture(autouse=True)
def _answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import math

    from app.parts import results

    monkeypatch.setattr(results, "AT_ONCE_S", math.inf)
    monkeypatch.setattr(results, "GIVE_UP_S", math.inf)
