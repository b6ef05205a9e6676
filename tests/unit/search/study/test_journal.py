"""The journal: whole after killed writers, and Optuna's own."""

import json

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from twin.search.study.journal import JournalFile
from twin.search.study.locks import FileLocks


@pytest.fixture
def journal(tmp_path):
    return JournalFile(tmp_path / "journal", FileLocks(tmp_path / "locks"))


def test_entries_are_read_back_from_any_number_on(journal):
    journal.append_logs([{"n": 0}, {"n": 1}])
    journal.append_logs([{"n": 2}])
    assert list(journal.read_logs(0)) == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert list(journal.read_logs(2)) == [{"n": 2}]
    assert list(journal.read_logs(3)) == []
    journal.append_logs([{"n": 3}])
    assert list(journal.read_logs(3)) == [{"n": 3}]


@pytest.mark.parametrize("torn", ['{"n"', '{"n": 1', "x" * 5000])
def test_a_torn_line_is_no_entry_and_goes_with_the_next_write(journal, tmp_path, torn):
    journal.append_logs([{"n": 0}])
    with (tmp_path / "journal").open("a") as file:
        file.write(torn)
    assert list(journal.read_logs(0)) == [{"n": 0}]
    journal.append_logs([{"n": 1}])
    assert list(journal.read_logs(0)) == [{"n": 0}, {"n": 1}]
    lines = (tmp_path / "journal").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"n": 0}, {"n": 1}]


def test_optunas_own_backend_reads_it(journal, tmp_path):
    study = optuna.create_study(storage=JournalStorage(journal), study_name="s")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    theirs = JournalStorage(JournalFileBackend(str(tmp_path / "journal")))
    read = optuna.load_study(study_name="s", storage=theirs)
    assert [t.params for t in read.trials] == [t.params for t in study.trials]
