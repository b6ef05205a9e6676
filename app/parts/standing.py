"""`Standing`: where a scenario has each knob, and what the engine's defaults come to."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.answers.forecast.effort import is_large
from app.answers.setup import Setup
from app.knobs.knob import Knob, Value
from app.knobs.values import value_at
from app.state.session import Session
from twin.errors import InputError


@dataclass(frozen=True, slots=True)
class Standing:
    """A scenario before its knobs are turned.

    Attributes:
        engine, workload: kinds, as they are with the knobs as turned.
        written: the scenario file as plain data.
        resolved: the same with the engine's defaults filled in, knobs as turned where they can be
            simulated.
    """

    engine: str
    workload: str
    written: Mapping[str, Any]
    resolved: Mapping[str, Any]

    def base(self, knob: Knob) -> Value:
        """Return where the scenario has a knob."""
        return value_at(self.written, knob.key)

    def default(self, knob: Knob) -> Value:
        """Return what the engine's default comes to."""
        return value_at(self.resolved, knob.key)


def standing(visitor: Session) -> Standing:
    """Return where the visitor's scenario has each knob."""
    plain = visitor.setup(visitor.view.plain())
    written, resolved = _data(visitor, plain)
    changes = visitor.view.changes
    engine = changes.get("engine.name") or value_at(written, "engine.name")
    workload = value_at(written, "workload.kind")
    return Standing(str(engine), str(workload), written, resolved)


def _without_large(setup: Setup) -> Setup:
    """Leave out a large trace: the engine's defaults are the same without it."""
    if not is_large(setup):
        return setup
    kept = {key: path for key, path in setup.private.items() if key != "workload.path"}
    return replace(setup, private=kept)


def _data(visitor: Session, plain: Setup) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    key = f"standing {plain.digest()}"
    found: tuple[Mapping[str, Any], Mapping[str, Any]] | None = visitor.shelf.get(key)
    if found is None:
        written = plain.file()[0].model_dump(mode="json")
        try:
            resolved: Mapping[str, Any] = _without_large(plain).scenario().as_dict()
        except InputError:
            resolved = written
        found = (written, resolved)
        visitor.shelf.put(key, found)
    return found
