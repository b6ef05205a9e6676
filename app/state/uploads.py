"""Uploads: read by the same validated readers as files, kept in a folder of one visitor's own."""

import hashlib
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.llm.config_json import read_config
from twin.load.documents import parse_yaml
from twin.load.paths import names_a_file

TRACE_MB, SMALL_MB = 64, 1
"""Largest trace, and largest scenario or model, in 10^6 bytes."""
SCENARIO_KB = 100
"""Largest scenario in 10^3 bytes: reading YAML with care takes some 20 s a megabyte."""


_MODEL = "uploaded-model"
"""What a network of a visitor's own is called: a bare `config.json` takes its folder's name."""


class Folder:
    """A private folder that goes when its visitor does."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="servetwin-"))
        self._gone = weakref.finalize(self, shutil.rmtree, self.path, True)

    def fresh(self, name: str) -> Path:
        """Return a new empty folder in it."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.path))

    @contextmanager
    def passing(self, name: str) -> Iterator[Path]:
        """Yield a new empty folder in it that goes at the end."""
        path = self.fresh(name)
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Upload:
    """One accepted upload.

    Attributes:
        name: as the visitor's file was called, for words on screen alone.
        digest: of its content.
        path: where the app put it; empty for a scenario, which is kept as data.
        data: of a scenario.
        about: what was found in it.
    """

    name: str
    digest: str
    path: str = ""
    data: Mapping[str, Any] | None = None
    about: str = ""


@dataclass(slots=True)
class Uploads:
    """What one visitor brought: at most one of each kind."""

    folder: Folder = field(default_factory=Folder)
    scenario: Upload | None = None
    trace: Upload | None = None
    model: Upload | None = None

    def private(self) -> dict[str, str]:
        """Return the scenario keys that uploads fill, with their paths."""
        parts = {"workload.path": self.trace, "llm": self.model}
        return {key: upload.path for key, upload in parts.items() if upload is not None}

    def put(self, kind: str, taken: Upload | None) -> None:
        """Keep an upload, or none, and delete the file of the one it replaces.

        Args:
            kind: of `TAKERS`.
            taken: the new one.
        """
        before: Upload | None = getattr(self, kind)
        setattr(self, kind, taken)
        if before is not None and before.path:
            own = Path(before.path).relative_to(self.folder.path).parts[0]
            shutil.rmtree(self.folder.path / own, ignore_errors=True)

    def digests(self) -> dict[str, str]:
        """Return the digests of their contents, by key."""
        parts = {"workload.path": self.trace, "llm": self.model}
        return {key: upload.digest for key, upload in parts.items() if upload is not None}


def take_scenario(folder: Folder, name: str, content: bytes) -> Upload:
    """Accept a scenario file.

    Raises:
        InputError: it is too large, no scenario, or names a file of this machine.
    """
    del folder
    _check_size(name, content, SCENARIO_KB)
    data = parse_yaml(_text(name, content), name)
    if not isinstance(data, dict):
        raise InputError("is not a scenario", where=name, remedy="upload a scenario's YAML file")
    _check_names_no_file(data, name)
    from twin.load.scenario_file import scenario_from

    found = scenario_from(data)
    # Whole numbers as keys become text here as they would on the way to another process.
    return Upload(
        name, _digest(content), data=json.loads(json.dumps(data)), about=found.file.description
    )


def take_trace(folder: Folder, name: str, content: bytes) -> Upload:
    """Accept a trace of requests.

    Raises:
        InputError: it is too large, packed, or nothing that a reader takes.
    """
    _check_size(name, content, TRACE_MB * 1000)
    _check_plain(name, content)
    path = _written(folder, "trace", f"trace{_suffix(name)}", name, content)
    try:
        requests = _requests_in(path)
    except InputError as error:
        shutil.rmtree(path.parent, ignore_errors=True)
        raise _renamed(error, path, name) from None
    count = "1 request" if requests == 1 else f"{requests:,} requests"
    return Upload(name, _digest(content), str(path), about=count)


def take_model(folder: Folder, name: str, content: bytes) -> Upload:
    """Accept a network's `config.json`.

    Raises:
        InputError: it is too large, or describes no network that the twin knows how to price.
    """
    _check_size(name, content, SMALL_MB * 1000)
    path = _written(folder, "model", f"{_MODEL}/config.json", name, content)
    try:
        json.loads(_text(name, content))
        about = read_config(path).name
    except (ValueError, RecursionError):
        shutil.rmtree(path.parents[1], ignore_errors=True)
        raise InputError("is not JSON", where=name, remedy="upload a model's config.json") from None
    except InputError as error:
        shutil.rmtree(path.parents[1], ignore_errors=True)
        raise _renamed(error, path, name) from None
    return Upload(name, _digest(content), str(path), about=about)


TAKERS: dict[str, Callable[[Folder, str, bytes], Upload]] = {
    "scenario": take_scenario,
    "trace": take_trace,
    "model": take_model,
}
"""How each kind of upload is accepted."""


def _requests_in(path: Path) -> int:
    from twin.workload.readers import read_trace

    return len(read_trace(path))


def _check_size(name: str, content: bytes, most_kb: int) -> None:
    if len(content) > most_kb * 1_000:
        most = f"{most_kb // 1000} MB" if most_kb >= 1000 else f"{most_kb} kB"
        raise InputError(
            f"is {_bytes(len(content))}", where=name, remedy=f"at most {most} are taken"
        )
    if not content.strip():
        raise InputError("is empty", where=name, remedy="upload a file with something in it")


def _bytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB" if count >= 1_000_000 else f"{count / 1e3:,.0f} kB"


def _written(folder: Folder, kind: str, file_name: str, name: str, content: bytes) -> Path:
    """Put an upload down under a name of the app's own choice."""
    fresh = None
    try:
        fresh = folder.fresh(kind)
        path = fresh / file_name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)
        raise InputError(
            f"cannot be kept: {error.strerror or error}", where=name, remedy="try again later"
        ) from None
    return path


def _check_plain(name: str, content: bytes) -> None:
    """Refuse what is packed: a few bytes can unpack to more than memory holds."""
    packed = {b"\x1f\x8b": "gzip", b"PK": "ZIP", b"\x28\xb5\x2f\xfd": "Zstandard", b"BZh": "bzip2",
              b"\xfd7zXZ": "XZ"}  # fmt: skip
    for magic, kind in packed.items():
        if content.startswith(magic):
            raise InputError(f"is packed ({kind})", where=name, remedy="upload it unpacked")
    if content.lstrip()[:15].lower().startswith((b"<!doctype", b"<html", b"<?xml", b"<script")):
        raise InputError("is a web page", where=name, remedy="upload CSV or JSON lines")


def _check_names_no_file(data: Mapping[str, Any], name: str, stem: str = "") -> None:
    for key, value in data.items():
        dotted = f"{stem}{key}"
        if isinstance(value, Mapping):
            _check_names_no_file(value, name, f"{dotted}.")
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Mapping):
                    _check_names_no_file(item, name, f"{dotted}.")
        elif names_a_file(dotted, value):
            raise InputError(
                f"{dotted} names a file, and no file of this machine is read",
                where=name,
                remedy="leave it out and upload that file too",
            )


def _text(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text", where=name, remedy="save it as UTF-8") from None


def _suffix(name: str) -> str:
    """A reader may go by a file's ending; nothing else of a visitor's name is used."""
    ending = Path(name).suffix.lower()
    return ending if ending in (".csv", ".json", ".jsonl", ".txt") else ".csv"


def _renamed(error: InputError, path: Path, name: str) -> InputError:
    """The error in words of the visitor's own file, without the app's path."""
    parts = (error.problem, error.where, error.remedy)
    problem, where, remedy = (p.replace(str(path), name) for p in parts)
    return InputError(problem, where=where, remedy=remedy)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
