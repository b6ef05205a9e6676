"""Where a study is kept: a journal file, or a database that other machines reach as well."""

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage, get_storage

from twin.errors import InputError, ServetwinError
from twin.search.study.journal import JournalFile
from twin.search.study.locks import FileLocks, Locks
from twin.search.study.postgres_locks import PostgresLocks

JOURNAL = "study.journal"
_LOCKS = ".locks"
_POSTGRES = ("postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2")
_PASSWORD = re.compile(r"(://[^:/@]*:)(.*)(?=@)|([?&]\w*password=)([^&]*)", re.DOTALL)
"""Up to the last @: a password that should have been percent-encoded is one nevertheless."""
_CHOICES = "give postgresql://user@host/database or sqlite:///file.db, or leave it out"


@dataclass(frozen=True, slots=True)
class Store:
    """An open storage.

    Attributes:
        where: how messages name it, without its password.
        storage: Optuna's side of it.
        locks: of the study.
        settle: waits until the disk has everything.
    """

    where: str
    storage: BaseStorage
    locks: Locks
    settle: Callable[[], None]


def open_store(url: str | None, out: Path, study: str) -> Store:
    """Open a study's storage, making it if need be.

    Args:
        url: of a database; None: the journal in `out`.
        out: folder of the journal.
        study: its name.

    Raises:
        InputError: the URL, the database or the folder cannot be used.
    """
    # Its log and its warnings are for those who call it; what matters here is told in our words.
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    if url is None:
        return _journal(out)
    try:
        scheme = urlsplit(url).scheme
    except ValueError:  # a bracket of an IPv6 address that stays open
        scheme = ""
    if scheme in _POSTGRES:
        return _postgres(url, study)
    if scheme == "sqlite":
        return _sqlite(url)
    problem = f"is no database that is known ({scheme})" if scheme else "is no URL"
    raise InputError(problem, where=named(url), remedy=_CHOICES)


def named(url: str) -> str:
    """Return how messages name `--storage URL`: without its password."""
    return f"--storage {without_passwords(url)}"


def without_passwords(text: str) -> str:
    """Return a URL, or a word with one in it, each password in it as `***`."""
    return _PASSWORD.sub(lambda found: f"{found[1] or found[3]}***", text)


def _journal(out: Path) -> Store:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable_folder(out, error) from None
    path = out / JOURNAL
    locks = FileLocks(out / f"{JOURNAL}{_LOCKS}")
    try:
        file = JournalFile(path, locks)
        storage = JournalStorage(file)
    except OSError as error:
        raise _unusable_folder(path, error) from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError):
        raise InputError(
            "is not the journal of a study", where=str(path), remedy="name another folder"
        ) from None
    return Store(str(path), storage, locks, file.settle)


def _unusable_folder(path: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot be written: {error.strerror or error}",
        where=str(path),
        remedy="name a folder that can be written",
    )


def _postgres(url: str, study: str) -> Store:
    try:
        import psycopg
    except ImportError:
        raise InputError(
            "PostgreSQL needs psycopg, which is not installed",
            where=named(url),
            remedy="pip install -e '.[distributed]'",
        ) from None
    rest = url.partition("://")[2]
    try:
        locks = PostgresLocks(f"postgresql://{rest}", study)
        tables = PostgresLocks(f"postgresql://{rest}", "tables")
    except psycopg.Error as error:
        raise _unreachable(url, error) from None
    try:
        # Two that make the same tables at once would trip over each other.
        with tables.exclusive(), _one_line(url):
            database = RDBStorage(
                f"postgresql+psycopg://{rest}", engine_kwargs={"pool_pre_ping": True}
            )
    finally:
        tables.leave()
    return Store(named(url), get_storage(database), locks, lambda: None)


def _sqlite(url: str) -> Store:
    file = url.partition("://")[2].removeprefix("/").partition("?")[0]
    path = Path(file)
    if not file or file == ":memory:":
        raise InputError("names no file", where=named(url), remedy="write sqlite:///file.db")
    if not path.absolute().parent.is_dir():
        raise InputError(
            "its folder does not exist", where=named(url), remedy=f"create {path.parent}"
        )
    locks = FileLocks(path.with_name(path.name + _LOCKS))
    try:
        with locks.exclusive(), _one_line(url):
            database = RDBStorage(url, engine_kwargs={"connect_args": {"timeout": 60}})
    except InputError:
        locks.leave()
        raise
    return Store(named(url), get_storage(database), locks, lambda: None)


@contextlib.contextmanager
def _one_line(url: str) -> Iterator[None]:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except SQLAlchemyError as error:
        raise _unreachable(url, getattr(error, "orig", None) or error) from None
    except RuntimeError as error:  # the tables are another version's
        raise _unreachable(url, error) from None


@contextlib.contextmanager
def kept_errors(where: str) -> Iterator[None]:
    """Tell in one line what goes wrong with a study's storage while it is used, and name it.

    Args:
        where: how messages name the storage.

    Raises:
        ServetwinError: it cannot be read or written, as on a full disk.
    """
    try:
        yield
    except StorageInternalError as error:
        raise _lost(where, error.__cause__ or error) from None
    except Exception as error:
        if not type(error).__module__.startswith("sqlalchemy."):
            raise
        raise _lost(where, error) from None


def _lost(where: str, error: BaseException) -> ServetwinError:
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    told = lines[0].strip() if lines else type(error).__name__
    return ServetwinError(f"{where}: {told}; trials that are finished are kept")


def _unreachable(url: str, error: object) -> InputError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    told = lines[0].strip()
    for found in _PASSWORD.finditer(url):
        password = found[2] or found[4]
        told = told.replace(password, "***") if password else told
    return InputError(
        f"cannot be used: {told}",
        where=named(url),
        remedy="check that it runs, and its host, port, user and database",
    )
