"""How a command ends: one line for an error, 2 for bad input, never a traceback."""

import contextlib
import io
import os
import sys
from typing import Any

from twin.errors import ServetwinError

_INTERRUPTED = 130
"""What a shell says of a program that ctrl-C ended."""


def run(app: Any, arguments: list[str] | None = None) -> int:
    """Run a Typer app and return its exit code."""
    _usable_streams()
    try:
        code = app(args=arguments, standalone_mode=False)
        if code == _INTERRUPTED:  # Typer takes a KeyboardInterrupt before we do, and is silent
            return _fail("stopped", _INTERRUPTED)
        sys.stdout.flush()
    except ServetwinError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("stopped", _INTERRUPTED)
    except BrokenPipeError:
        # The reader went away (`| head`): not an error, but Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        name = f"{error.filename}: " if error.filename else "cannot write the output: "
        return _fail(f"{name}{error.strerror or error}", 2)
    except MemoryError:
        return _fail("out of memory; simulate fewer requests or a shorter window", 1)
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(str(error), file=sys.stderr)
            return 2
        # Typer's own usage errors, whichever of its versions raises them.
        if hasattr(error, "format_message"):
            return _fail(error.format_message(), int(getattr(error, "exit_code", 2)))
        if type(error).__name__ in ("Exit", "Abort"):
            return int(getattr(error, "exit_code", 1))
        raise
    return int(code or 0)


def _usable_streams() -> None:
    """Let output go nowhere where a stream is closed, and never fail on a character."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")


def _fail(message: str, code: int) -> int:
    text = " ".join(message.split())
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    print(f"error: {text}", file=sys.stderr)
    return code
