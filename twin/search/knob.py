"""`Knob`: one thing an operator may turn, and which engine has it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Value = bool | int | float | str | None
"""What a knob is turned to; None: the engine's own default."""

Candidate = Mapping[str, Value]
"""Dotted scenario keys to values. The empty one is the scenario as its file has it."""


@dataclass(frozen=True, slots=True)
class Choices:
    """One of a few values without an order that a sampler could use."""

    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Powers:
    """A power of two from `low` to `high`, both included."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Span:
    """A number between two bounds, both included, in steps."""

    low: float
    high: float
    step: float


Domain = Choices | Powers | Span


@dataclass(frozen=True, slots=True)
class Knob:
    """One row of the search space.

    Attributes:
        key: dotted scenario key that it sets, as `--set` takes it.
        domain: what it may be turned to; a problem can narrow it.
        engines: which engines have it: no other one's scheduler heeds it.
        needs: values of other knobs under which it has an effect, by key; all must hold.
        lossy: whether it trades the quality of answers.
        only: engines whose configuration has a value, of those values that not all of `engines`
            have; empty: none, though their simulated schedulers know what it would do.
        about: what it does, in a few words.
    """

    key: str
    domain: Domain
    engines: frozenset[str]
    about: str
    needs: Mapping[str, tuple[Value, ...]]
    lossy: bool = False
    only: Mapping[Value, frozenset[str]] = field(default_factory=dict)
