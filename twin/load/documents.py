"""YAML documents: safe, size-limited, and strict about duplicate keys."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from twin.errors import InputError

T = TypeVar("T")

_MAX_BYTES = 4 * 2**20
_MAX_NODES = 200_000
# Control characters would steer the reader's terminal; half a surrogate pair fits no file.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


class _StrictLoader(yaml.SafeLoader):
    """SafeLoader that refuses duplicate keys and floods of aliases, and reads `1e3` as a number."""

    nodes = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.nodes += 1
        if self.nodes > _MAX_NODES:
            raise yaml.YAMLError("too many nodes")
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases (*name) are not accepted here; write the value out")
        return super().compose_node(parent, index)

    def construct_scalar(self, node: Any) -> Any:
        value = super().construct_scalar(node)
        if isinstance(value, str) and _UNPRINTABLE.search(value):
            raise yaml.MarkedYAMLError(
                problem="an unprintable character in the text", problem_mark=node.start_mark
            )
        return value

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, bool) or not isinstance(key, (str, int)):
                raise yaml.MarkedYAMLError(
                    problem=f"key {key!r} is neither text nor a whole number",
                    problem_mark=key_node.start_mark,
                )
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key!r} stands twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


# YAML 1.1 wants a dot in a float; people write 1e3.
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?[0-9][0-9_]*(?:\.[0-9_]*)?[eE][-+]?[0-9]+$"),
    list("-+0123456789"),
)


def read_text(path: Path, what: str) -> str:
    """Return the text of a small file, or an `InputError` that says why not."""
    try:
        if path.is_dir():
            raise InputError(f"is a folder, not a {what}", where=str(path))
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError(f"no such {what}", where=str(path), remedy="check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be read: {reason}", where=str(path)) from None
    if len(raw) > _MAX_BYTES:
        raise InputError(
            f"is larger than {_MAX_BYTES // 2**20} MiB", where=str(path), remedy=f"give a {what}"
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"is not UTF-8 text (byte {error.start})", where=str(path), remedy=f"give a {what}"
        ) from None


def parse_yaml(text: str, where: str) -> Any:
    """Return the plain data of one YAML document."""
    return _loaded(text, where, lambda loader: loader.get_single_data())


def parse_yaml_documents(text: str, where: str) -> list[Any]:
    """Return the plain data of every document in a YAML stream, empty ones left out."""

    def every(loader: _StrictLoader) -> list[Any]:
        found = []
        while loader.check_data():  # type: ignore[no-untyped-call]
            found.append(loader.get_data())
        return [one for one in found if one is not None]

    return _loaded(text, where, every)


def _loaded(text: str, where: str, take: Callable[[_StrictLoader], T]) -> T:
    loader = None
    try:
        loader = _StrictLoader(text)
        return take(loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{where}, line {mark.line + 1}" if mark else where
        raise InputError(
            f"is not valid YAML: {error.problem or error.context}", where=place
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"is not valid YAML: {_first_line(error)}", where=where) from None
    finally:
        if loader is not None:
            loader.dispose()


def read_mapping(path: Path, what: str) -> dict[str, Any]:
    """Return a YAML file that holds a mapping."""
    data = parse_yaml(read_text(path, what), str(path))
    if not isinstance(data, dict):
        found = "nothing" if data is None else type(data).__name__
        raise InputError(
            f"holds {found}, not keys and values",
            where=str(path),
            remedy="`twin scenario init` writes a starter",
        )
    return data


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
