"""What ran, as a hash: a changed kernel is another measurement."""

import hashlib
import inspect
from collections.abc import Iterable
from typing import Any


def sources_sha256(sources: Iterable[Any], otherwise: str) -> str:
    """Return the hash of the source text of `@triton.jit` functions.

    Triton wraps a function in one of two types, by whether it compiles or interprets; the text is
    that of the Python function within, so that both give one hash.

    Args:
        otherwise: hashed where there are no sources: the library's function and its version.
    """
    texts = [inspect.getsource(getattr(source, "fn", source)) for source in sources]
    return hashlib.sha256("\n".join(texts or [otherwise]).encode()).hexdigest()


def module_sha256(function: Any) -> str:
    """Return the hash of the source file that a function (or a `partial` of one) stands in."""
    inner = getattr(function, "func", function)
    module = inspect.getmodule(inner)
    text = inspect.getsource(module if module is not None else inner)
    return hashlib.sha256(text.encode()).hexdigest()
