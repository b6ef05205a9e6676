"""Reading text nobody vouches for: plain or gzip, UTF-8, never more than a bounded part at once."""

import gzip
import io
import json
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from twin.errors import InputError
from twin.workload.limits import MAX_REQUESTS

MAX_LINE_BYTES = 16 * 2**20
MAX_JSON_BYTES = 128 * 2**20
HEAD_BYTES = 64 * 2**10
MAX_LINES = MAX_REQUESTS + 1000
"""A header and some blank lines more than the requests a run may have."""

_GZIP_MAGIC = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_TEXT_REMEDY = "give a UTF-8 text file, plain or gzip"


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file, unpacking gzip by its content; every failure is an `InputError`."""
    where = str(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            what = "a folder" if path.is_dir() else "not a regular file"
            raise InputError(f"is {what}", where=where, remedy="give the path of a trace file")
        with path.open("rb") as plain:
            packed = plain.read(2) == _GZIP_MAGIC
            plain.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=plain) as unpacked:
                    yield io.BufferedReader(unpacked)
            else:
                yield plain
    except FileNotFoundError:
        raise InputError(
            "no such file",
            where=where,
            remedy="paths in a scenario count from its folder, those of --set from the current one",
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise InputError(
            f"damaged gzip ({error})", where=where, remedy="fetch or compress the file again"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read ({reason})", where=where) from None


def head(path: Path) -> str:
    """Return the first 64 KiB as text, for telling formats apart."""
    with opened(path) as file:
        start = file.read(HEAD_BYTES)
    if not start.strip():
        raise _empty(path)
    if b"\0" in start or start.startswith(_UTF16_BOMS):
        raise InputError("is not UTF-8 text", where=str(path), remedy=_TEXT_REMEDY)
    return start.removeprefix(_BOM).decode("utf-8", errors="replace")


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without outer white space) of each line that isn't blank."""
    with opened(path) as file:
        for number, raw in enumerate(iter(partial(file.readline, MAX_LINE_BYTES + 1), b""), 1):
            if len(raw) > MAX_LINE_BYTES:
                raise InputError(
                    f"the line is longer than {MAX_LINE_BYTES >> 20} MiB",
                    where=f"{path}, row {number}",
                    remedy="write one request a line",
                )
            if number > MAX_LINES:
                raise InputError(
                    f"more than {MAX_REQUESTS:,} rows", where=str(path), remedy="cut the trace"
                )
            text = _decoded(raw.removeprefix(_BOM) if number == 1 else raw, f"{path}, row {number}")
            if text := text.strip():
                yield number, text


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of each line of a JSON-lines file."""
    for number, text in text_lines(path):
        where = f"{path}, row {number}"
        record = _parsed(text, where)
        if not isinstance(record, dict):
            raise InputError(
                "the line is not a JSON object", where=where, remedy="write one {…} a line"
            )
        yield number, record


def json_document(path: Path) -> Any:
    """Return the one JSON value a file holds."""
    with opened(path) as file:
        # A plain file shows its size beforehand; what gzip unpacks to shows only in reading.
        too_large = path.stat().st_size > MAX_JSON_BYTES
        raw = b"" if too_large else file.read(MAX_JSON_BYTES + 1)
    if too_large or len(raw) > MAX_JSON_BYTES:
        raise InputError(
            f"the JSON is larger than {MAX_JSON_BYTES >> 20} MiB",
            where=str(path),
            remedy="leave out texts, or write JSON lines with arrival_s, prompt_tokens and "
            "output_tokens",
        )
    if not raw.strip():
        raise _empty(path)
    return _parsed(_decoded(raw.removeprefix(_BOM), str(path)), str(path))


def _empty(path: Path) -> InputError:
    return InputError("the file is empty", where=str(path), remedy="a trace needs requests")


def _decoded(raw: bytes, where: str) -> str:
    if b"\0" in raw:
        raise InputError("is not text (it holds NUL bytes)", where=where, remedy=_TEXT_REMEDY)
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 text (byte {error.start})", where=where, remedy=_TEXT_REMEDY
        ) from None


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            raise InputError(
                "holds more than one JSON value", where=where, remedy="keep one of them"
            ) from None
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(
            f"not valid JSON ({error.msg} at {place})", where=where, remedy="is it cut off?"
        ) from None
    except RecursionError:
        raise InputError("the JSON is nested too deeply", where=where) from None
    except ValueError as error:  # integers of thousands of digits
        raise InputError(f"not usable JSON ({error})", where=where) from None
