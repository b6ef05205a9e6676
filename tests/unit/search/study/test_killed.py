"""A few kills; `make audit` has many (tests/audit/test_killed_searches.py)."""

from tests.postgres import running_postgres
from tests.search_runs import Kills, check_counted_once

TRIALS = 14


def test_workers_killed_on_a_journal(tmp_path):
    kills = Kills(tmp_path / "out", TRIALS, 2, seed=1, all_every=3)
    check_counted_once(kills.run(3), TRIALS)
    assert (kills.done, kills.restarts) == (3, 1)
    assert not (tmp_path / "out" / "study.journal.locks").exists()


def test_a_worker_killed_on_postgresql(tmp_path):
    with running_postgres() as url:
        kills = Kills(tmp_path / "out", TRIALS, 2, url, seed=2, all_every=0)
        check_counted_once(kills.run(1), TRIALS)
    assert (kills.done, kills.restarts) == (1, 0)
    assert not (tmp_path / "out" / "study.journal").exists()
