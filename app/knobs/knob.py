"""`Knob`: one thing a user may turn, its widget, its names in links and engines."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Value = bool | int | float | str | None

Kind = Literal["choice", "whole", "number", "flag"]
"""choice: one of its options; whole: a whole number, offered or typed; number: any number above
`low`; flag: on or off."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One row of the table.

    Attributes:
        key: dotted scenario key, as `--set` takes it.
        short: its key in links, unique.
        group: heading it stands under.
        kind: how it is turned.
        options: what is offered, None for the engine's default; a scenario's own value joins.
        titles: what engines call it, by engine; the scenario's key where there is none.
        about: what it does, in a few words.
        engines: which have it.
        unit: of its values.
        workloads: kinds of workload that it is of; empty: all.
        low: least number.
    """

    key: str
    short: str
    group: str
    kind: Kind
    about: str
    options: tuple[Value, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    engines: frozenset[str] = frozenset({"vllm", "sglang", "trtllm"})
    unit: str = ""
    workloads: tuple[str, ...] = ()
    low: float = 0.0

    def title(self, engine: str) -> str:
        """Return what an engine calls it, with its unit."""
        name = self.titles.get(engine, self.key.rpartition(".")[2])
        return f"{name} ({self.unit})" if self.unit else name

    def applies(self, engine: str, workload: str) -> bool:
        """Whether it has an effect there."""
        return engine in self.engines and (not self.workloads or workload in self.workloads)
