"""Without a terminal a long run writes a plain line now and then, a short one nothing."""

import pytest

from twin.cli import progress
from twin.search.study.progress import StudyProgress

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What time it is: the last number."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[-1])
    return now


def test_a_short_run_writes_nothing(clock: list[float], capsys: Captured) -> None:
    with progress.shown_work(3) as show:
        show(0, "lru", 6.0)
        clock.append(9.0)
        show(1, "fifo", 6.0)
    assert capsys.readouterr().err == ""


def test_a_long_run_writes_a_line_now_and_then(clock: list[float], capsys: Captured) -> None:
    with progress.shown_work(100) as show:
        for second in range(0, 60, 5):
            clock.append(float(second))
            show(second, "lru, 862 blocks", 90.0)
    assert capsys.readouterr().err.splitlines() == [
        "10/100 done, 1:30 left: lru, 862 blocks",
        "40/100 done, 1:30 left: lru, 862 blocks",
    ]


def test_a_search_and_its_judging_write_lines_too(clock: list[float], capsys: Captured) -> None:
    with progress.shown_search(quiet=False) as show, progress.shown_step(quiet=False) as step:
        clock.append(10.0)
        assert show is not None
        assert step is not None
        show(StudyProgress(done=4, total=20, left_s=61.0, best=1.5, best_number=2, unit="req/s"))
        step("running trial 2 again")
    assert capsys.readouterr().err.splitlines() == [
        "4/20 trials, 1:01 left, best 1.5 req/s (trial 2)",
        "running trial 2 again",
    ]


def test_quiet_is_quiet() -> None:
    with progress.shown_search(quiet=True) as show, progress.shown_step(quiet=True) as step:
        assert show is None
        assert step is None
