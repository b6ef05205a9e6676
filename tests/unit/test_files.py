import stat

import pytest

from twin.errors import InputError
from twin.files import whole_directory, whole_file, write_text


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
