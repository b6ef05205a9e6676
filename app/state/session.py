"""What one visitor's session keeps between redraws; nothing of it is shared with others."""

from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from app.answers.forecast.effort import Pace
from app.answers.job import Job
from app.answers.kept import Shelf
from app.answers.setup import Setup
from app.state.link import linked
from app.state.uploads import Uploads
from app.state.view import UPLOADED, View

_KEY = "servetwin"


@dataclass(slots=True)
class Session:
    """One visitor.

    Attributes:
        view: what is on screen.
        baseline: what it is compared with; None: the scenario as its file has it.
        uploads: what the visitor brought.
        told: sentences about the link, until they are dismissed.
        shelf: answers that were given.
        jobs: questions at work, by kind; one of each, the latest.
        refused: questions whose work was cancelled, and problems of those that failed, by digest.
        last: the last answer of each kind, to be shown until a new one is there.
        pace: how fast simulations are here.
        generation: grows when all widgets are to be made anew.
        studies: ids of the searches that were started or followed here, the one on screen last.
    """

    view: View
    baseline: View | None = None
    uploads: Uploads = field(default_factory=Uploads)
    told: tuple[str, ...] = ()
    link_digest: str = ""
    shelf: Shelf = field(default_factory=Shelf)
    jobs: dict[str, Job] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    pace: Pace = field(default_factory=Pace)
    generation: int = 0
    studies: list[str] = field(default_factory=list)

    def setup(self, view: View | None = None) -> Setup:
        """Return what is asked of the twin for a view, uploads included."""
        view = view or self.view
        own = self.uploads.scenario
        data = own.data if own is not None and view.scenario == UPLOADED else None
        return Setup(
            view.scenario, data, view.changes, self.uploads.private(), self.uploads.digests()
        )

    def baseline_setup(self) -> Setup:
        """Return what the view is compared with."""
        return self.setup(self.baseline or self.view.plain())

    def show(self, view: View) -> None:
        """Show another view; every widget is made anew."""
        self.view = view
        self.generation += 1


def session() -> Session:
    """Return the visitor's session; a new one begins with what its link asks for."""
    if _KEY not in st.session_state:
        asked = linked(dict(st.query_params))
        st.session_state[_KEY] = Session(
            asked.view,
            asked.baseline,
            told=asked.ignored,
            link_digest=asked.digest,
            studies=[asked.study] if asked.study else [],
        )
    found: Session = st.session_state[_KEY]
    return found
