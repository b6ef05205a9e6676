"""A command line that starts a server: which engine it is, and what it is given."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath

from twin.errors import InputError
from twin.export.options import Value
from twin.export.reading.names import arity, own_name, printable

_MODULES = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "dynamo.vllm": "vllm",
    "sglang.launch_server": "sglang",
    "dynamo.sglang": "sglang",
    "tensorrt_llm.commands.serve": "trtllm",
    "dynamo.trtllm": "trtllm",
}
_PROGRAMS = {("vllm", "serve"): "vllm", ("sglang", "serve"): "sglang"}
_IMAGES = re.compile(r"(?:^|/)(vllm-openai|sglang|tensorrt-llm/release)(?::v?([\w.-]+))?$")
_IMAGE_ENGINES = {"vllm-openai": "vllm", "sglang": "sglang", "tensorrt-llm/release": "trtllm"}
_ENDS = {"&&", "||", "|", ";", "&", ">", ">>", "<"}
_MODEL_ANYWHERE = ("vllm", "trtllm")
"""Engines whose command takes the model's name after options as well."""
_LONGEST = 2**18
"""Characters of a line that is taken apart by a shell's rules; Linux takes no longer argument."""
_LEVEL = re.compile(r"-O=?\w+")
_NUMBERED = re.compile(r"\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Server:
    """A server's command, taken apart.

    Attributes:
        engine: whose.
        words: what follows the program's name.
        version: of its image, where one is named.
    """

    engine: str
    words: tuple[str, ...]
    version: str | None = None


def shell_words(text: str) -> list[str]:
    """Return the words of a shell text: of the first line that starts a server, or of all of it."""
    lines = re.sub(r"\\\r?\n", " ", text).splitlines()
    for line in lines:
        words = _split(line)
        if find_server(words) is not None:
            return words
    return _split(" ".join(lines))


def _split(line: str) -> list[str]:
    if len(line) > _LONGEST:  # would take minutes: its time grows with the square
        return line.split()
    try:
        return shlex.split(line, comments=True)
    except ValueError:  # an open quote
        return line.split()


def find_server(words: Sequence[str], image: str = "") -> Server | None:
    """Return the server that a command starts, or None.

    Args:
        words: of the command.
        image: of the container it runs in: it tells the version, and what a command without a
            program is for.
    """
    known = _in_image(image)
    for at, word in enumerate(words):
        if " " in word.strip() and find_server(_split(word)) is not None:  # sh -c "vllm serve …"
            return _with_version(find_server(_split(word)), known)
        known = known or _in_image(word)
        engine = _PROGRAMS.get((PurePath(word).name, words[at + 1] if at + 1 < len(words) else ""))
        if engine is not None:
            return _with_version(Server(engine, _until_end(words[at + 2 :])), known)
        if PurePath(word).name == "trtllm-serve":
            rest = words[at + 1 :]
            rest = rest[1:] if rest[:1] == ["serve"] else rest
            return _with_version(Server("trtllm", _until_end(rest)), known)
        if word in _MODULES and at and words[at - 1] == "-m":
            return _with_version(Server(_MODULES[word], _until_end(words[at + 1 :])), known)
        if known is not None and not image and _in_image(word) and known.engine == "vllm":
            return _with_version(Server("vllm", _until_end(words[at + 1 :])), known)
    if image and known is not None:
        return _with_version(Server(known.engine, _until_end(words)), known)
    return None


def _in_image(text: str) -> Server | None:
    found = _IMAGES.search(text)
    if found is None:
        return None
    version = found.group(2)
    version = version if version and _NUMBERED.match(version) else None
    return Server(_IMAGE_ENGINES[found.group(1)], (), version)


def _with_version(server: Server | None, known: Server | None) -> Server | None:
    if server is None or known is None or known.engine != server.engine:
        return server
    return Server(server.engine, server.words, known.version)


def _until_end(words: Sequence[str]) -> tuple[str, ...]:
    for at, word in enumerate(words):
        if word in _ENDS:
            return tuple(words[:at])
    return tuple(words)


def arguments(engine: str, words: Sequence[str]) -> Iterator[tuple[str, Value]]:
    """Yield (option as the engine spells it, its value) of a server's words.

    A word that belongs to no option is the model. Flags yield true or false, several values a list.

    Raises:
        InputError: a flag is followed by true or false, which no engine takes.
    """
    at, named = 0, False
    while at < len(words):
        word = words[at]
        at += 1
        if not _is_option(word):
            if not named and (at == 1 or engine in _MODEL_ANYWHERE):
                yield "model", word
                named = True
            continue
        name, given = _taken_apart(engine, word)
        off = name.startswith("no-") and arity(engine, name[3:]) == "0"
        if not given and (off or arity(engine, name) == "0"):
            _check_bare(name, words[at] if at < len(words) else "")
            yield (name[3:], False) if off else (name, True)
            continue
        most = 1 if arity(engine, name) in ("1", "?") else len(words)
        while at < len(words) and len(given) < most and not _is_option(words[at]):
            given.append(words[at])
            at += 1
        yield name, given[0] if len(given) == 1 else given or True


def may_hold_model(engine: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the options that nobody knows here and that a word follows: it may be the model.

    Args:
        engine: whose command it is.
        words: that follow the program's name.
    """
    found = dict[str, None]()
    for word, following in pairwise(words):
        if _is_option(word) and not _is_option(following):
            name, given = _taken_apart(engine, word)
            if not given and not arity(engine, name):
                found[printable(name)] = None
    return tuple(found)


def _taken_apart(engine: str, word: str) -> tuple[str, list[str]]:
    """Return the name of an option as the engine spells it, and the value it brings, if any."""
    if engine == "vllm" and _LEVEL.fullmatch(word):  # -O3
        word = f"--optimization-level={word[2:].lstrip('=')}"
    name, equals, value = word.partition("=")
    return own_name(engine, name), [value] if equals else []


def _check_bare(flag: str, following: str) -> None:
    if following.lower() in ("true", "false"):
        raise InputError(
            f"--{flag} takes no value, not {following!r} either",
            where="command line",
            remedy=f"write --{flag} alone to turn it on",
        )


def _is_option(word: str) -> bool:
    return word.startswith("-") and not re.fullmatch(r"-\d+(\.\d+)?", word) and word != "-"
