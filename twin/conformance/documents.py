"""Reading a recording: one JSON object, plain or gzipped, of bounded size."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any, BinaryIO

from twin.errors import InputError

MAX_BYTES = 200 * 2**20
"""Largest recording read, bytes after decompression."""

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK_BYTES = 2**20


def read_document(path: str | Path, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return the JSON object in `path`, which may be gzipped whatever its name.

    Raises:
        InputError: the file cannot be read, is cut short, too large, or holds no JSON object.
    """
    where = str(path)
    data = _read_bytes(Path(path), max_bytes, where)
    if not data.strip():
        raise InputError("is empty", where=where, remedy="give a recording (.json or .json.gz)")
    try:
        document = json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise InputError("is nested too deeply to be a recording", where=where) from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"is not valid JSON at line {error.lineno}, column {error.colno}: {error.msg}",
            where=where,
            remedy="it may have been cut short; copy it again",
        ) from None
    except ValueError as error:
        raise InputError(f"is not valid JSON: {error}", where=where) from None
    if not isinstance(document, dict):
        raise InputError(
            f"holds a JSON {type(document).__name__}",
            where=where,
            remedy="a recording is one JSON object",
        )
    return document


def _read_bytes(path: Path, max_bytes: int, where: str) -> bytes:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == _GZIP_MAGIC
            file.seek(0)
            if packed:
                with gzip.open(file) as unpacked:
                    return _bounded(unpacked, max_bytes, where)  # type: ignore[arg-type]
            return _bounded(file, max_bytes, where)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"its gzip data is damaged or cut short ({error})", where=where, remedy="copy it again"
        ) from None
    except IsADirectoryError:
        raise InputError(
            "cannot be read: it is a folder", where=where, remedy="name the recordings in it"
        ) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", where=where) from None


def _bounded(file: BinaryIO, max_bytes: int, where: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := file.read(_CHUNK_BYTES):
        size += len(part)
        if size > max_bytes:
            raise InputError(
                f"holds more than {max_bytes // 2**20} MiB",
                where=where,
                remedy="a recording of some thousand steps is a few MiB",
            )
        parts.append(part)
    return b"".join(parts)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number JSON knows")
