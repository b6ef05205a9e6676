import os
import stat

import pytest

from twin.errors import InputError
from twin.files import is_special, whole_directory, whole_file, write_text


def test_a_file_appears_whole(tmp_path):
    write_text(tmp_path / "a.txt", "grün\n")
    assert (tmp_path / "a.txt").read_bytes() == "grün\n".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_a_failure_keeps_the_old_file(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")

    def write_half():
        with whole_file(target) as temporary:
            temporary.write_text("hal")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_new_file_has_the_permissions_of_any_other(tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("")
    write_text(tmp_path / "ours", "")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)


@pytest.mark.parametrize("name", ["missing/a.txt", "."])
def test_an_impossible_file_is_an_input_error(tmp_path, name):
    with pytest.raises(InputError):
        write_text(tmp_path / name, "x")


def test_a_directory_appears_whole_and_not_at_all_on_failure(tmp_path):
    with whole_directory(tmp_path / "out") as folder:
        (folder / "a").write_text("1")
        assert not (tmp_path / "out").exists()
    assert (tmp_path / "out" / "a").read_text() == "1"

    def fail():
        with whole_directory(tmp_path / "other") as folder:
            (folder / "a").write_text("1")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        fail()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_folder_in_the_place_of_a_file_stops_before_anything_is_replaced(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").mkdir()

    def replace_both():
        with whole_directory(tmp_path) as folder:
            (folder / "a").write_text("new")
            (folder / "b").write_text("new")

    with pytest.raises(InputError, match="'b' in it is a folder"):
        replace_both()
    assert (tmp_path / "a").read_text() == "old"


def test_a_device_or_pipe_receives_the_text_and_stays(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "figures")
    assert os.read(reader, 100) == b"figures"
    os.close(reader)
    assert is_special(pipe)
    with pytest.raises(InputError, match="a device or a pipe"), whole_file(pipe):
        pass


def test_a_full_device_is_an_input_error():
    with pytest.raises(InputError, match="/dev/full: cannot be written: No space left"):
        write_text("/dev/full", "x" * 100_000)
    assert is_special("/dev/full")


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    link = tmp_path / "link"
    link.symlink_to("real")
    write_text(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_directory_made_meanwhile_is_filled(tmp_path):
    target = tmp_path / "out"
    with whole_directory(target) as folder:
        (folder / "a").write_text("a")
        target.mkdir()
        (target / "b").write_text("b")
    assert sorted(path.name for path in target.iterdir()) == ["a", "b"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
