"""`Evaluation`: what one candidate gave."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from twin.search.knob import Candidate
from twin.search.length import Length


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A candidate's figures, or why there are none.

    Attributes:
        candidate: what was tried.
        objectives: value by objective, in its own unit and direction.
        violations: by constraint, relative to its limit: above 0 it is not kept.
        figures: what `twin.report.metrics.summarise` gives.
        infeasible: why it was not simulated, one line; None: it was.
        length: of its run; None: it was not simulated, or comes from a study's record.
    """

    candidate: Candidate
    objectives: Mapping[str, float] = field(default_factory=dict)
    violations: Mapping[str, float] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    infeasible: str | None = None
    length: Length | None = None

    @property
    def meets(self) -> bool:
        """Whether it was simulated and keeps every constraint."""
        return self.infeasible is None and all(v <= 0 for v in self.violations.values())

    @property
    def broken(self) -> float:
        """By how much constraints are broken, all together, relative to their limits."""
        return sum(value for value in self.violations.values() if value > 0)


Evaluates = Callable[[Candidate, float], Evaluation]
"""Gives a candidate's figures on the first so much of the search part, in (0, 1]."""
