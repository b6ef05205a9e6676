"""What judging asks to be run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from twin.search.evaluation import Evaluation
from twin.search.knob import Candidate
from twin.search.piece import SEARCH, Piece


@dataclass(frozen=True, slots=True)
class WholeRun:
    """One run over all of the held-out part, with every step recorded.

    Attributes:
        summary: its figures, from `twin.report.metrics.summarise`.
        inputs: the scenario as plain data, the engine's defaults filled in.
        at_limits: objectives had the SLO's limits been other ones: by factor on the limits, then
            by objective. Factors go with the names `tight` and `loose`; empty without an SLO.
        notes: caveats of the forecast, one sentence each.
    """

    summary: Mapping[str, Any]
    inputs: Mapping[str, Any]
    at_limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Runs(Protocol):
    """Runs candidates; equal questions get equal answers."""

    def evaluate(
        self,
        candidate: Candidate,
        piece: Piece = SEARCH,
    ) -> Evaluation:
        """Return a candidate's figures on a piece of the workload.

        Args:
            candidate: dotted keys to values.
            piece: of the workload.
        """
        ...

    def whole(self, candidate: Candidate) -> WholeRun:
        """Return the recorded run of a feasible candidate over the held-out part."""
        ...

    @property
    def recorded(self) -> bool:
        """Whether traffic is a recording, the same whatever the seed."""
        ...
