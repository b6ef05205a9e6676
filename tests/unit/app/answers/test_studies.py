"""Studies run detached, are found by their ids alone, and lose nothing."""

import os
import signal
import stat

import pytest

from app.answers.search import studies
from app.answers.search.studies import find_study, is_id, new_study, running
from app.answers.search.study import Watched
from tests.app_studies import order, wait_for
from twin.errors import InputError


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(studies.HOME, str(tmp_path))
    return tmp_path


@pytest.fixture
def study():
    found = new_study(order())
    yield found
    if found.alive:
        os.kill(found.launch.pid, signal.SIGKILL)
        wait_for(lambda: not found.alive)


def test_ids_are_long_and_no_other_text_reaches_the_disk(home):
    one, other = new_study(order()), new_study(order())
    assert one.id != other.id
    assert len(one.id) == 32
    assert is_id(one.id)
    assert find_study(one.id) == one
    for text in ("", "..", "../x", one.id.upper(), one.id + "\n", f"{one.id}/..", "0" * 32):
        assert find_study(text) is None


def test_only_its_owner_may_read_it(home):
    study = new_study(order())
    for folder in (study.folder, study.folder.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_study_pauses_resumes_and_ends(study):
    watched = Watched(study)
    assert watched.look().state == "stopped"
    study.start()
    with pytest.raises(InputError, match="runs already"):
        study.start()
    assert os.getsid(study.launch.pid) == study.launch.pid != os.getsid(0)
    wait_for(lambda: watched.look().done >= 2)
    study.ask("pause")
    wait_for(lambda: not study.alive)
    paused = Watched(study).look()  # as another visitor, or a new server, sees it
    assert paused.state == "paused"
    assert 2 <= paused.done < 8
    kept = watched._seen().finished
    study.start()
    done = wait_for(lambda: (now := watched.look()) and not now.at_work and now, 120)
    assert (done.state, done.done, done.total) == ("done", 8, 8)
    assert watched._seen().finished[: len(kept)] == kept
    found = watched.findings()
    assert found.sentence
    assert found.decision in ("adopt", "keep the default")


def test_a_killed_one_goes_on(study):
    study.start()
    watched = Watched(study)
    wait_for(lambda: watched.look().done >= 1)
    os.kill(study.launch.pid, signal.SIGKILL)
    wait_for(lambda: not study.alive)
    now = watched.look()
    assert now.state == "stopped"
    study.start()
    wait_for(lambda: watched.look().done > now.done)


def test_it_is_judged_early_on_demand(study):
    study.start()
    watched = Watched(study)
    wait_for(lambda: watched.look().complete >= 1)
    study.ask("judge")
    done = wait_for(lambda: (now := watched.look()).state == "done" and now, 120)
    assert done.done == done.total < 8
    assert watched.findings().sentence


def test_what_went_wrong_is_one_line_without_folders(study):
    (study.folder / "order.json").write_text(
        (study.folder / "order.json").read_text().replace('"chat-h100"', '"no-such-scenario"')
    )
    study.start()
    watched = Watched(study)
    now = wait_for(lambda: (now := watched.look()).state == "failed" and now)
    assert "no-such-scenario" in now.why
    assert "\n" not in now.why
    assert str(study.folder) not in now.why


def test_a_server_runs_so_many_and_says_so(study, monkeypatch):
    study.start()
    assert running() == 1
    monkeypatch.setattr(studies, "MOST_RUNNING", 1)
    other = new_study(order())
    with pytest.raises(InputError, match="1 studies run on this server"):
        other.start()
    assert other.launch is None


def test_it_is_deleted_at_rest_alone(study):
    study.start()
    with pytest.raises(InputError, match="pause it first"):
        study.delete()
    os.kill(study.launch.pid, signal.SIGKILL)
    wait_for(lambda: not study.alive)
    study.delete()
    assert find_study(study.id) is None
    assert not study.folder.exists()


def test_a_process_number_that_is_somebody_elses_is_not_killed(study):
    """After a restart of the machine another process may have the number."""
    study._note(studies.Launch(os.getpid(), 0.0, 8))
    assert not study.alive
    study.ask("pause")
    assert Watched(study).look().state == "paused"


def test_a_folder_that_cannot_be_written_is_one_line(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(studies.HOME, str(tmp_path / "file"))
    with pytest.raises(InputError, match=r"studies cannot be kept.*SERVETWIN_HOME"):
        new_study(order())
