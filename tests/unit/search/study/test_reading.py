"""A journal read beside its writer."""

import pytest

from tests.studies import run
from twin.errors import InputError
from twin.search.study.coordinator import StudyStoppedError
from twin.search.study.locks import FileLocks
from twin.search.study.reading import Seen, StudyReader
from twin.search.study.storage import open_store

TRIALS = 12


@pytest.fixture
def out(tmp_path, monkeypatch):
    run(tmp_path, monkeypatch, trials=TRIALS)
    return tmp_path


def test_it_sees_what_the_study_has(tmp_path, monkeypatch):
    result = run(tmp_path, monkeypatch, trials=TRIALS)
    seen = StudyReader(tmp_path / "study.journal").look()
    assert seen.finished == result.trials
    assert seen.begun == TRIALS == len(seen.finished_at_s)
    assert list(seen.finished_at_s) == sorted(seen.finished_at_s)


def test_it_follows_a_study_that_grows(tmp_path, monkeypatch):
    reader = StudyReader(tmp_path / "study.journal")
    assert reader.look() == Seen()
    run(tmp_path, monkeypatch, trials=5)
    assert reader.look().begun == 5
    run(tmp_path, monkeypatch, trials=9)
    assert [trial.number for trial in reader.look().finished] == list(range(9))


def test_it_neither_locks_nor_writes(out):
    journal = out / "study.journal"
    before = journal.read_bytes(), journal.stat().st_mtime_ns, sorted(out.iterdir())
    with FileLocks(out / "study.journal.locks").exclusive():
        assert StudyReader(journal).look().begun == TRIALS
    assert (journal.read_bytes(), journal.stat().st_mtime_ns) == before[:2]
    assert [path for path in sorted(out.iterdir()) if path.is_file()] == [
        path for path in before[2] if path.is_file()
    ]


def test_a_torn_line_is_not_read_until_it_is_whole(out):
    journal = out / "study.journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:10])
    reader = StudyReader(journal)
    assert len(reader.look().finished) == TRIALS - 1
    journal.write_bytes(b"".join(lines))
    assert len(reader.look().finished) == TRIALS


def test_one_who_has_not_finished_counts_as_begun_alone(tmp_path, monkeypatch):
    with pytest.raises(StudyStoppedError, match="stopped after 5 of 12"):
        run(tmp_path, monkeypatch, trials=TRIALS, break_at={6: KeyboardInterrupt()}, halving=False)
    seen = StudyReader(tmp_path / "study.journal").look()
    assert (len(seen.finished), seen.begun) == (5, 6)


def test_what_is_no_journal_is_refused_in_a_line(tmp_path):
    path = tmp_path / "study.journal"
    path.write_text("no JSON\n")
    with pytest.raises(InputError, match="is not the journal of a study"):
        StudyReader(path).look()


def test_a_store_opens_after_it_was_read(out):
    StudyReader(out / "study.journal").look()
    store = open_store(None, out, "any")
    assert len(store.storage.get_all_studies()) == 1
    store.locks.leave()
