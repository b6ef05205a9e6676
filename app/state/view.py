"""`View`: what is on screen, apart from uploads."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from app.knobs.knob import Value

FIRST = "chat-h100"
"""The scenario a first visit sees."""

UPLOADED = "(uploaded scenario)"
"""Stands for a scenario of the user's own where names of built-in ones stand."""


@dataclass(frozen=True, slots=True)
class View:
    """A scenario and the knobs that are not where its file has them.

    Attributes:
        scenario: name of a built-in one, or `UPLOADED`.
        changes: dotted keys to values; None: the engine's default.
        usd_per_gpu_hour: what a GPU costs; None: cost is told in GPU-hours.
    """

    scenario: str = FIRST
    changes: Mapping[str, Value] = field(default_factory=dict)
    usd_per_gpu_hour: float | None = None

    def plain(self) -> "View":
        """Return the scenario as its file has it."""
        return View(self.scenario, {}, self.usd_per_gpu_hour)
