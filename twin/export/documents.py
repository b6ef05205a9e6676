"""Text of exported files: YAML in a fixed order, and commands that a shell reads back."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any

import yaml


class _Plain(yaml.SafeDumper):
    """SafeDumper without aliases, lists indented under their key."""

    def ignore_aliases(self, data: Any) -> bool:
        """Write every value out."""
        del data
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indent lists too."""
        del indentless
        super().increase_indent(flow, False)


def _text(dumper: _Plain, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Plain.add_representer(str, _text)


def yaml_text(data: Mapping[str, Any]) -> str:
    """Return a mapping as YAML, keys in the order given; empty text of an empty one."""
    if not data:
        return "{}\n"
    return yaml.dump(data, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=2**20)


def yaml_documents(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return several mappings as one stream."""
    return "---\n".join(yaml_text(document) for document in documents)


def command_text(words: list[str], arguments: Iterable[str]) -> str:
    """Return a command over several lines, an option and its value to a line."""
    lines = [shlex.join(words)]
    for word in arguments:
        if word.startswith("--"):
            lines.append(f"  {shlex.quote(word)}")
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return " \\\n".join(lines) + "\n"
