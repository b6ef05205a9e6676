"""`Row`: one policy key and the option that an engine has for it, read in both directions."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from twin.export.options import Value
from twin.policy import EnginePolicy


@dataclass(frozen=True, slots=True)
class Row:
    """Where one value of a policy stands in an engine's configuration.

    Attributes:
        key: of a policy, `sglang.page_size` for one inside another.
        option: of the engine, spelt so.
        values: the engine's value by the policy's; None: they are spelt the same. A value that is
            missing cannot be said to the engine; of two that it spells alike the first is read.
        also: further values of the engine, and what they are in a policy.
    """

    key: str
    option: str
    values: Mapping[Value, Value] | None = None
    also: Mapping[Value, Value] | None = None

    def says(self, value: Value) -> bool:
        """Whether the engine can be told this value."""
        return self.values is None or value in self.values

    def to_option(self, value: Value) -> Value:
        """Return the engine's value of a policy's."""
        return value if self.values is None else self.values[value]

    def to_policy(self, value: Value) -> Value:
        """Return the policy's value of an engine's.

        Raises:
            KeyError: no policy has it.
        """
        if self.values is None:
            return value
        known = {theirs: ours for ours, theirs in reversed(list(self.values.items()))}
        return {**known, **(self.also or {})}[value]


def leaves(policy: EnginePolicy) -> Iterator[tuple[str, Value, Value]]:
    """Yield (key, value, default) of everything a policy says, its schema version left out."""
    yield from _leaves(policy, type(policy)(), "")


def _leaves(
    model: BaseModel, default: BaseModel, prefix: str
) -> Iterator[tuple[str, Value, Value]]:
    for name in type(model).model_fields:
        value, usual = getattr(model, name), getattr(default, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, usual, f"{prefix}{name}.")
        elif name != "schema_version":
            yield prefix + name, value, usual


def nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"a.b": 1} as {"a": {"b": 1}}."""
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        *parents, last = key.split(".")
        node = nested
        for name in parents:
            node = node.setdefault(name, {})
        node[last] = value
    return nested


def flatten(nested: Mapping[str, Any]) -> dict[str, Any]:
    """Return {"a": {"b": 1}} as {"a.b": 1}."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        if isinstance(value, Mapping):
            flat |= {f"{key}.{name}": inner for name, inner in flatten(value).items()}
        else:
            flat[key] = value
    return flat


def write_rows(rows: Iterable[Row], policy: EnginePolicy) -> tuple[dict[str, Value], set[str]]:
    """Return (flat options, the keys they carry): of what a policy says beyond its defaults.

    A key at its default is not written and yet carried: the engine's default is the same.
    """
    by_key = {row.key: row for row in rows}
    options: dict[str, Value] = {}
    carried = set[str]()
    for key, value, default in leaves(policy):
        row = by_key.get(key)
        if row is None:
            continue
        if value == default:
            carried.add(key)
        elif row.says(value):
            options[row.option] = row.to_option(value)
            carried.add(key)
    return options, carried


def read_rows(
    rows: Iterable[Row], options: Mapping[str, Value], refuse: Callable[[str, Value], Exception]
) -> dict[str, Value]:
    """Return flat policy keys of flat options.

    Args:
        rows: of the engine.
        options: in its spelling; those without a row are left to others.
        refuse: makes the error for an option whose value no policy has.
    """
    policy: dict[str, Value] = {}
    for row in rows:
        if row.option in options:
            try:
                policy[row.key] = row.to_policy(options[row.option])
            except KeyError:
                raise refuse(row.option, options[row.option]) from None
    return policy
