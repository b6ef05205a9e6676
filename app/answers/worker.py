"""`python -m app.answers.worker FOLDER`: answer the question in a folder, and say how far it is."""

import json
import os
import resource
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from app.answers.job import ANSWER, PROBLEM, PROGRESS, QUESTION
from app.answers.kinds import KINDS, Say
from twin.errors import InputError, ServetwinError
from twin.files import write_text

_EVERY_S, _WATCH_S = 0.2, 1.0
_LEAST_BYTES = 4 * 2**30
"""Memory that a question may take in any case; else it is half of the machine's."""


def main(folder: Path) -> int:
    """Answer the question in a folder; return the exit code."""
    _bound_memory()
    _end_with_server(folder)
    asked = json.loads((folder / QUESTION).read_text())
    with suppress(InputError):  # the folder is gone: so is the visitor, and nobody will read it
        return _answered(asked, folder)
    return 1


def _answered(asked: dict[str, Any], folder: Path) -> int:
    try:
        answer = KINDS[asked["kind"]](asked["question"], _sayer(folder))
    except ServetwinError as error:
        write_text(folder / PROBLEM, str(error))
        return error.exit_code
    except MemoryError:
        write_text(folder / PROBLEM, "out of memory; ask for fewer requests or a shorter window")
        return 1
    write_text(folder / ANSWER, json.dumps(answer, default=_plain))
    return 0


def _bound_memory() -> None:
    """Let a question that asks for too much fail alone, before the machine runs out of memory."""
    every = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    most = max(_LEAST_BYTES, every // 2)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or hard > most:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _end_with_server(folder: Path) -> None:
    """End this process when its server or its visitor is gone: nobody will read an answer.

    A callback would not do: some questions think long before they say anything.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent and folder.is_dir():
            time.sleep(_WATCH_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _sayer(folder: Path) -> Say:
    """Return a callback that writes down how far the work is, a few times a second."""
    last_s = 0.0

    def say(done: int, total: int | None, what: str) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s < _EVERY_S:
            return
        last_s = now_s
        said = {"done": done, "total": total, "what": what}
        write_text(folder / PROGRESS, json.dumps(said))

    return say


def _plain(value: object) -> object:
    return value.item() if hasattr(value, "item") else str(value)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
