"""Output files that exist whole or not at all: written beside their place, then renamed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from twin.errors import InputError


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success it replaces `path`, on error it goes.

    Raises:
        InputError: the folder does not exist or cannot be written, or `path` is a folder, a
            device or a pipe.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError("is a folder, not a file", where=str(target), remedy="name a file in it")
    if is_special(target):
        raise InputError("is a device or a pipe", where=str(target), remedy="name a file")
    if target.is_symlink():
        target = Path(os.path.realpath(target))  # the link stays, what it names is replaced
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise _cannot_write(target, error) from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes files private; an output has the permissions any new file would have.
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def is_special(path: str | Path) -> bool:
    """Whether `path` is a device, a pipe or a socket: renaming onto it would destroy it."""
    target = Path(path)
    return target.exists() and not target.is_file() and not target.is_dir()


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write bytes to `path`, whole or not at all; a device or a pipe simply receives them."""
    try:
        if is_special(path):
            Path(path).write_bytes(data)
            return
        with whole_file(path) as temporary:
            temporary.write_bytes(data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _cannot_write(Path(path), error) from None


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8 with its own line ends to `path`, whole or not at all."""
    write_bytes(path, text.encode())


@contextmanager
def whole_directory(directory: str | Path) -> Iterator[Path]:
    """Yield an empty folder beside `directory`; on success its files appear in `directory`.

    A `directory` that does not exist yet appears by one rename. In one that exists, each file of
    the new set replaces its namesake whole, and everything else in it stays.

    Raises:
        InputError: `directory` is a file, or its parent cannot be written.
    """
    target = Path(directory).absolute()
    if target.exists() and not target.is_dir():
        raise InputError("is a file, not a folder", where=str(directory), remedy="name a folder")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise _cannot_write(target, error) from None
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        _move_in(temporary, target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _move_in(temporary: Path, target: Path) -> None:
    if not target.exists():
        try:
            os.replace(temporary, target)
        except OSError:
            if not target.is_dir():  # else another run has just made it
                raise
        else:
            return
    names = sorted(entry.name for entry in temporary.iterdir())
    blocked = [name for name in names if (target / name).is_dir()]
    if blocked:
        raise InputError(
            f"{blocked[0]!r} in it is a folder where a file must go",
            where=str(target),
            remedy="name another folder",
        )
    for name in names:
        os.replace(temporary / name, target / name)


def _cannot_write(target: Path, error: OSError) -> InputError:
    return InputError(
        f"cannot be written: {error.strerror or error}",
        where=str(target),
        remedy="name a place in a folder that exists and can be written",
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
