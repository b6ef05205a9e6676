"""The journal of a measurement: every row is on disk before the next is measured.

A folder's `rows.jsonl` has one JSON object a line. The first says whose rows they are; then each
line is a `row`, a `skip` (an item and why it has no row) or a `discard` (rows that are not to be
trusted after all). A run that was killed leaves whole lines, and at most one torn one at the end.
"""

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from pydantic import ValidationError

from calibrate.measurement import Measurement
from calibrate.measuring.item import Item, Key, key_of
from calibrate.measuring.session import DRY_RUN, Session
from twin.errors import InputError

FILE = "rows.jsonl"
SCHEMA_VERSION = 1
_SAME = ("gpu", "engine", "engine_version")


@dataclass(frozen=True, slots=True)
class Kept:
    """What a journal holds.

    Attributes:
        rows: the last of each item; those discarded are gone.
        skipped: reason by item.
    """

    facts: dict[str, Any]
    engine: str
    rows: dict[Key, Measurement] = field(default_factory=dict)
    skipped: dict[Key, str] = field(default_factory=dict)


class Journal:
    """An open journal, appended to; a new folder gets a new one.

    Args:
        folder: made if it does not exist.
        session: whose rows will be written.

    Raises:
        InputError: the folder holds rows of another GPU or engine, or is no such folder.
    """

    def __init__(self, folder: Path, session: Session) -> None:
        self.path = folder / FILE
        # Pretended rows are made again in no time.
        self._durable = session.engine != DRY_RUN
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"cannot be made: {error.strerror or error}", where=str(folder)
            ) from None
        head = {
            "schema_version": SCHEMA_VERSION,
            "gpu": session.facts["name"],
            "engine": session.engine,
            "engine_version": session.engine_version,
            "facts": dict(session.facts),
        }
        if self.path.exists() and not self.path.is_file():
            raise InputError("is not a file", where=str(self.path), remedy="name another folder")
        self._file = self.path.open("ab")
        try:
            _lock(self._file, self.path)
            self._begin(head, session)
        except BaseException:
            self._file.close()
            raise

    def _begin(self, head: dict[str, Any], session: Session) -> None:
        """Read what is there, or write the head of a new journal."""
        held = self.path.read_bytes()
        # A run killed within its first line leaves nothing to go on from.
        if b"\n" in held:
            self._check(head)
            self.kept = read_journal(self.path)
            _cut_torn_line(self.path)
        elif not json.dumps(head).encode().startswith(held):
            raise InputError("is not a journal of measurements", where=str(self.path))
        else:
            self.kept = Kept(head["facts"], session.engine)
            os.truncate(self.path, 0)
            self._append(head)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, row: Measurement) -> None:
        """Append a row; it is on disk when this returns."""
        self._append({"row": row.model_dump(mode="json")})
        key = key_of(row.kernel, row.shape, row.l2)
        self.kept.rows[key] = row
        self.kept.skipped.pop(key, None)

    def skip(self, item: Item, reason: str) -> None:
        """Append why an item has no row."""
        self._append({"skip": _plain(item.key), "reason": reason})
        self.kept.skipped[item.key] = reason

    def discard(self, items: Iterable[Item], reason: str) -> None:
        """Take rows back."""
        keys = [item.key for item in items]
        self._append({"discard": [_plain(key) for key in keys], "reason": reason})
        for key in keys:
            self.kept.rows.pop(key, None)

    def _append(self, entry: dict[str, Any]) -> None:
        self._file.write(json.dumps(entry, allow_nan=False).encode() + b"\n")
        self._file.flush()
        if self._durable:
            os.fsync(self._file.fileno())

    def _check(self, head: dict[str, Any]) -> None:
        found = _head(self.path)
        if any(found.get(name) != head[name] for name in _SAME):
            held, ours = (
                f"{one.get('gpu')} under {one.get('engine')} {one.get('engine_version')}"
                for one in (found, head)
            )
            raise InputError(
                f"holds measurements of {held}, not of {ours}",
                where=str(self.path),
                remedy="name another folder",
            )


def read_journal(path: Path) -> Kept:
    """Return what a journal holds.

    Raises:
        InputError: no such file, not a journal, or a line that is damaged.
    """
    head = _head(path)
    kept = Kept(dict(head["facts"]), str(head["engine"]))
    for number, entry in _entries(path):
        try:
            if "row" in entry:
                row = Measurement.model_validate(entry["row"])
                key = key_of(row.kernel, row.shape, row.l2)
                kept.rows[key] = row
                kept.skipped.pop(key, None)
            elif "skip" in entry:
                kept.skipped[_key(entry["skip"])] = str(entry["reason"])
            else:
                for raw in entry["discard"]:
                    kept.rows.pop(_key(raw), None)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(
                first["msg"].removeprefix("Value error, "), where=f"{path}, line {number}"
            ) from None
        except (KeyError, TypeError, ValueError):
            raise InputError("is no row, skip or discard", where=f"{path}, line {number}") from None
    return kept


def _head(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            head: dict[str, Any] = json.loads(file.readline())
        version = head["schema_version"]
        if version == SCHEMA_VERSION and isinstance(head["facts"], dict) and head["engine"]:
            return head
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror or error})",
            where=str(path),
            remedy="name a folder that twin-calibrate measure wrote",
        ) from None
    except (ValueError, KeyError, TypeError):
        raise InputError("is not a journal of measurements", where=str(path)) from None
    raise InputError(
        f"journal schema {version!r}, this program reads {SCHEMA_VERSION}", where=str(path)
    )


def _entries(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, entry) after the head; a torn last line is none."""
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):
        if number == 1:
            continue
        try:
            entry = json.loads(line)
        except ValueError:
            entry = None
        if not isinstance(entry, dict):
            raise InputError("is damaged", where=f"{path}, line {number}")
        yield number, entry


def _lock(file: IO[bytes], path: Path) -> None:
    """Keep other runs out until the file is closed; where the system has no locks, don't."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            "another run is writing there",
            where=str(path),
            remedy="wait for it, or name another folder",
        ) from None
    except OSError:
        return  # a file system without locks


def _cut_torn_line(path: Path) -> None:
    whole = path.read_bytes().rfind(b"\n") + 1
    os.truncate(path, whole)


def _plain(key: Key) -> list[Any]:
    return [key.table, dict(key.shape), key.l2]


def _key(raw: Any) -> Key:
    table, shape, l2 = raw
    return Key(str(table), tuple(sorted(shape.items())), str(l2))
