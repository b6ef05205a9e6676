"""`StudyOptions`: how a problem is searched, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from twin.search.evaluation import Evaluation
from twin.search.knob import Candidate
from twin.search.study.rungs import Rung

TrialState = Literal["complete", "pruned", "infeasible"]


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """How a problem is searched.

    Attributes:
        out: folder of `study.journal`.
        trials: how many there are in the end, all machines and runs together.
        sampler: a name of `twin.search.study.samplers.SAMPLERS`; None: TPE for one objective,
            NSGA-II for several.
        seed: of what samplers draw.
        workers: processes on this machine.
        storage: URL of a database that keeps the study instead of the journal.
        ray: address of a Ray cluster that evaluates, `auto` for the one at hand; None: none does.
        halving: whether weak candidates stop after a part of the traffic; None: where it is
            possible and helps (one objective, TPE), after parts that represent the whole alone.
    """

    out: Path
    trials: int = 200
    sampler: str | None = None
    seed: int = 0
    workers: int = 1
    storage: str | None = None
    ray: str | None = None
    halving: bool | None = None


@dataclass(frozen=True, slots=True)
class FinishedTrial:
    """One trial.

    Attributes:
        number: from 0.
        state: `complete`: seen on all of the search part (it may break constraints); `pruned`:
            stopped on a part of it; `infeasible`: not simulated, or nothing came of it.
        evaluation: its figures, of the last part it was seen on.
        reason: why it is not complete, one line.
        share: of the search part that its figures are of.
    """

    number: int
    state: TrialState
    evaluation: Evaluation
    reason: str | None = None
    share: float = 1.0

    @property
    def candidate(self) -> Candidate:
        """What was tried."""
        return self.evaluation.candidate


@dataclass(frozen=True, slots=True)
class StudyResult:
    """A finished study.

    Attributes:
        trials: by number, all of them.
        name: of the study in its storage.
        where: it is kept.
        sampler: that drew the candidates.
        rungs: parts of the traffic after which weak candidates might have stopped.
        population: of a genetic sampler; None: another kind.
    """

    trials: tuple[FinishedTrial, ...]
    name: str
    where: str
    sampler: str
    rungs: tuple[Rung, ...] = ()
    population: int | None = None

    @property
    def halving(self) -> bool:
        """Whether weak candidates stopped early."""
        return any(rung.used for rung in self.rungs)

    @property
    def complete(self) -> tuple[Evaluation, ...]:
        """What was seen on all of the search part, by number of the trial."""
        return tuple(trial.evaluation for trial in self.trials if trial.state == "complete")

    @property
    def reasons(self) -> Mapping[str, int]:
        """How often each reason kept a candidate from being one to choose, commonest first."""
        counts: dict[str, int] = {}
        for trial in self.trials:
            broken = [name for name, value in trial.evaluation.violations.items() if value > 0]
            told = [f"breaks {name}" for name in broken]
            if trial.state == "infeasible" and trial.reason:
                told = [trial.reason]
            for reason in told:
                counts[reason] = counts.get(reason, 0) + 1
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
