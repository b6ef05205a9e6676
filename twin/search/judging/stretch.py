"""How long the runs are that a report's figures are of: they begin empty and end drained."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from twin.report.numbers import MISSING, count, seconds
from twin.search.judging.confirm import Confirmation
from twin.search.judging.pareto import Tried, distinct
from twin.search.judging.runs import Runs
from twin.search.length import Length
from twin.search.piece import HELD_OUT

EDGES = (
    "Every run begins with an empty server and ends when the last answer is out, or at the "
    "horizon; rates, cost, energy and goodput per GPU-hour include both ends, which weigh the "
    "more the shorter the run. So absolute figures compare on runs of one length alone: the "
    "default with what was found in one table, not one table with another."
)
"""What a reader has to know of figures of runs of different length."""

STRETCHES = ("search", "confirming", "held_out")
STRETCH_HEADINGS = ("figures of", "runs", "requests", "last arrival", "end of the run")


@dataclass(frozen=True, slots=True)
class Stretch:
    """Runs of one kind: how many there are, and how long each is.

    Attributes:
        runs: of each policy.
        length: of one; means over them.
    """

    runs: int
    length: Length

    @property
    def told(self) -> str:
        """The length in words: `a run of 420 s`, `10 runs of 18.0 s on average`."""
        length = seconds(self.length.simulated_s)
        return f"a run of {length}" if self.runs == 1 else f"runs of {length} on average"


def mean_stretch(lengths: Sequence[Length | None]) -> Stretch | None:
    """Return runs of these lengths as one; None where there is none."""
    known = [one for one in lengths if one is not None]
    if not known:
        return None
    mean = Length(
        fmean(one.requests for one in known),
        fmean(one.traffic_s for one in known),
        fmean(one.simulated_s for one in known),
    )
    return Stretch(len(known), mean)


def stretches(
    trials: Sequence[Tried], shown: Confirmation | None, runs: Runs
) -> dict[str, Stretch | None]:
    """Return by `STRETCHES` how long the runs of a search are, under the default.

    Where the default cannot run, the first trial that can tells instead.

    Args:
        trials: those over the whole of the search part.
        shown: the confirmation that is shown; None: nothing was run again.
        runs: what runs candidates.
    """
    able = [one for one in distinct(trials) if one.evaluation.infeasible is None]
    able.sort(key=lambda one: (bool(one.candidate), one.number))
    if not able:
        return dict.fromkeys(STRETCHES)
    candidate = able[0].candidate
    held_out = runs.evaluate(candidate, HELD_OUT)
    return {
        "search": mean_stretch([runs.evaluate(candidate).length]),
        "confirming": None if shown is None else mean_stretch(shown.lengths),
        "held_out": mean_stretch([held_out.length]),
    }


def stretch_rows(found: Mapping[str, Stretch | None], over: str) -> list[list[str]]:
    """Return a row a kind of run: which figures are of it, how many, requests, times.

    Args:
        found: by `STRETCHES`.
        over: what the pairs are: `seeds` or `stretches`.
    """
    limits = ", limits" if over == "stretches" else ""
    names = {
        "search": "trials, importance, one knob turned",
        "confirming": f"gains{'' if limits else ', limits'}, over {over}",
        "held_out": f"what binds{limits}: all held-out traffic",
    }
    return [
        [
            names[name],
            str(one.runs),
            count(one.length.requests),
            seconds(one.length.traffic_s),
            seconds(one.length.simulated_s),
        ]
        if one is not None
        else [names[name], *[MISSING] * 4]
        for name, one in found.items()
    ]
