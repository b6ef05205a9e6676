"""`compare`: differences of inputs and changes of figures between two runs, A and B."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from twin.compare.directions import NOT_FIGURES, NOT_INPUTS, Direction, direction_of
from twin.errors import InputError
from twin.report.numbers import significant

Verdict = Literal["better", "worse", "same", "neutral", "within error", "unknown"]

ABSENT = "(not set)"
"""Stands for a value that only the other side has."""


@dataclass(frozen=True, slots=True)
class InputChange:
    """An input that differs, by dotted key."""

    key: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class FigureChange:
    """A figure of both runs.

    Attributes:
        key: dotted, as in `ttft_s.p99`.
        a, b: the figures; None where a run has none. True and False count as 1 and 0.
        delta: b - a.
        percent: 100 · (b - a) / |a|; None where a is 0.
        direction: which way is better.
        verdict: what the change means for B; same: equal to three significant digits.
    """

    key: str
    a: float | None
    b: float | None
    delta: float | None
    percent: float | None
    direction: Direction
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Comparison:
    """What differs between A and B; `figures` is empty when only inputs were compared."""

    inputs: tuple[InputChange, ...]
    figures: tuple[FigureChange, ...]

    def figure(self, key: str) -> FigureChange | None:
        """Return the change of one figure by its dotted key."""
        return next((change for change in self.figures if change.key == key), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain, JSON-ready data: `{inputs: [...], figures: [...]}`."""
        return {
            "inputs": [asdict(change) for change in self.inputs],
            "figures": [asdict(change) for change in self.figures],
        }


def compare(
    a: Mapping[str, Any],
    b: Mapping[str, Any],
    *,
    relative_error: Mapping[str, float] | None = None,
) -> Comparison:
    """Compare two runs, scenarios or policies.

    Args:
        a, b: `{"inputs": …, "summary": …}` each (see `as_side`); without
            `summary` on either side only the inputs are compared.
        relative_error: known forecast error by top-level figure key, as in `{"ttft_s": 0.09}`;
            a change inside the joint error of both runs, sqrt(2) times it, is no ranking.

    Raises:
        InputError: a side is not such a mapping.
    """
    for side, name in ((a, "A"), (b, "B")):
        for part in ("inputs", "summary"):
            if not isinstance(side.get(part, {}) or {}, Mapping):
                raise InputError(
                    f"{part!r} is not a mapping", where=name, remedy="give a result or scenario"
                )
        if not (side.get("inputs") or side.get("summary")):
            raise InputError(
                "holds neither inputs nor a summary",
                where=name,
                remedy="give a result, a scenario or a policy",
            )
    left, right = a.get("summary"), b.get("summary")
    return Comparison(
        tuple(_input_changes(a.get("inputs") or {}, b.get("inputs") or {})),
        tuple(_figure_changes(left, right, relative_error or {})) if left and right else (),
    )


def as_side(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{"inputs", "summary"}` of a result, a scenario or a policy read from a file.

    A result is what `summary.json` holds (figures beside `inputs`), or already has this shape;
    anything else is taken for inputs alone.
    """
    inputs = data.get("inputs")
    if not isinstance(inputs, Mapping):
        return {"inputs": dict(data), "summary": None}
    if "summary" in data:
        return {"inputs": inputs, "summary": data["summary"]}
    figures = {key: value for key, value in data.items() if key not in ("inputs", "notes")}
    return {"inputs": inputs, "summary": figures or None}


def flatten(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) of nested mappings; lists of mappings by index."""
    for key, value in data.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{name}.")
        elif _is_list_of_mappings(value):
            yield from flatten({str(i): item for i, item in enumerate(value)}, f"{name}.")
        else:
            yield name, list(value) if isinstance(value, tuple) else value


def _is_list_of_mappings(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(item, Mapping) for item in value)
    )


def _input_changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[InputChange]:
    left, right = dict(flatten(a)), dict(flatten(b))
    # A's order, then what only B has: the same every time.
    for key in [*left, *(key for key in right if key not in left)]:
        one, other = left.get(key, ABSENT), right.get(key, ABSENT)
        if key not in NOT_INPUTS and not _equal(one, other):
            yield InputChange(key, one, other)


def _equal(one: Any, other: Any) -> bool:
    """1 and 1.0 are the same setting, True and 1 are not."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _figure_changes(
    a: Mapping[str, Any], b: Mapping[str, Any], errors: Mapping[str, float]
) -> Iterator[FigureChange]:
    left, right = dict(_figures(a)), dict(_figures(b))
    for key in [*left, *(key for key in right if key not in left)]:
        error = errors.get(key.partition(".")[0])
        yield _figure_change(key, left.get(key), right.get(key), error)


def _figures(summary: Mapping[str, Any]) -> Iterator[tuple[str, float | None]]:
    for key, value in flatten(summary):
        if key.partition(".")[0] in NOT_FIGURES:
            continue
        if value is None:
            yield key, None
        elif isinstance(value, (bool, int, float)):
            yield key, float(value)


def _figure_change(key: str, a: float | None, b: float | None, error: float | None) -> FigureChange:
    direction = direction_of(key)
    if a is None or b is None:
        verdict: Verdict = "same" if a is b else "unknown"
        return FigureChange(key, a, b, None, None, direction, verdict)
    delta = b - a
    percent = 100 * delta / abs(a) if a else None
    return FigureChange(key, a, b, delta, percent, direction, _verdict(a, b, direction, error))


def _verdict(a: float, b: float, direction: Direction, error: float | None) -> Verdict:
    delta = b - a
    # Figures that read the same are not ranked: nobody could see why.
    if significant(a) == significant(b):
        return "same"
    if direction == "neutral":
        return "neutral"
    if error is not None and abs(delta) <= math.sqrt(2) * error * abs(a):
        return "within error"
    return "better" if (delta < 0) == (direction == "lower") else "worse"
