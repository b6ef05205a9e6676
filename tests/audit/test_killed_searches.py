"""Workers of a search are killed at random moments: it completes with each trial counted once."""

import json

import pytest

from tests.audit import records
from tests.postgres import running_postgres
from tests.search_runs import Kills, check_counted_once

pytestmark = pytest.mark.audit

KILLS = 20
TRIALS = 150


def attempts(trials):
    return sum(trial.user_attrs["worker"]["attempt"] > 1 for trial in trials)


def test_two_workers_killed_twenty_times_on_a_journal(tmp_path):
    kills = Kills(tmp_path / "out", TRIALS, 2, seed=6)
    trials = kills.run(KILLS)
    check_counted_once(trials, TRIALS)
    assert kills.done == KILLS
    # Had kills struck between trials only, little would have been tried.
    assert attempts(trials) >= KILLS // 2
    journal = (tmp_path / "out" / "study.journal").read_bytes()
    lines = [json.loads(line) for line in journal.splitlines()]
    records.write(
        "killed-search-journal",
        {"kills": kills.done, "restarts": kills.restarts, "trials": len(trials),
         "tried_again": attempts(trials), "lines": len(lines)},
    )  # fmt: skip


def test_two_workers_killed_twenty_times_on_postgresql(tmp_path):
    with running_postgres() as url:
        kills = Kills(tmp_path / "out", TRIALS, 2, url, seed=7)
        trials = kills.run(KILLS)
    check_counted_once(trials, TRIALS)
    assert kills.done == KILLS
    # Had kills struck between trials only, little would have been tried.
    assert attempts(trials) >= KILLS // 2
    records.write(
        "killed-search-postgresql",
        {"kills": kills.done, "restarts": kills.restarts, "trials": len(trials),
         "tried_again": attempts(trials)},
    )  # fmt: skip
