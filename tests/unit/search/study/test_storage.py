"""Where studies are kept, and what is said of where they cannot be."""

import sys

import pytest

from twin.errors import InputError
from twin.search.study.storage import open_store


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "--storage : is no URL; give postgresql://"),
        ("study.db", "--storage study.db: is no URL"),
        ("mysql://me:secret@host/db", r"--storage mysql://me:\*\*\*@host/db: is no database that"),
        ("postgresql://me:secret@127.0.0.1:1/db", "cannot be used: .*refused; check that it runs"),
        ("postgresql://[::1/db", "is no URL"),
        ("mysql://me:top/secret@x@host/db", r"mysql://me:\*\*\*@host/db: is no database"),
        ("mysql://me@host/db?password=secret&a=b", r"db\?password=\*\*\*&a=b: is no database"),
        ("postgresql://me:the secret@host/db", r"unexpected spaces found in \"\*\*\*\""),
        ("sqlite://", "names no file"),
        ("sqlite:///no/such/folder/x.db", "sqlite:///no/such/folder/x.db: its folder does not"),
    ],
)
def test_a_storage_that_cannot_be_is_one_line_without_its_password(url, message, tmp_path):
    with pytest.raises(InputError, match=message) as refused:
        open_store(url, tmp_path, "study")
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "x.db").write_text("hardly a database, but long enough to be looked at" * 9)
    with pytest.raises(InputError, match="cannot be used: file is not a database"):
        open_store(f"sqlite:///{tmp_path}/x.db", tmp_path, "study")
    assert [path.name for path in tmp_path.iterdir()] == ["x.db"]


@pytest.mark.parametrize("text", ["junk\n", "[1]\n", '{"a": 1}\n', "3\n", '{"op_code": 99}\n'])
def test_a_file_that_is_no_journal(tmp_path, text):
    (tmp_path / "study.journal").write_text(text)
    with pytest.raises(InputError, match=r"study.journal: is not the journal of a study"):
        open_store(None, tmp_path, "study")
    assert (tmp_path / "study.journal").read_text() == text


def test_postgresql_without_its_driver(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"needs psycopg.*pip install -e '.\[distributed\]'"):
        open_store("postgresql://host/db", tmp_path, "study")


def test_an_output_folder_that_is_a_file(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        open_store(None, tmp_path / "out", "study")
