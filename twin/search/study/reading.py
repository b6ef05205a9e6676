"""`StudyReader`: what a journal says, read beside its writer and without a lock."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend

from twin.errors import InputError
from twin.search.study.journal import whole_lines
from twin.search.study.ledger import finished_trial
from twin.search.study.options import FinishedTrial


@dataclass(frozen=True, slots=True)
class Seen:
    """A study as its journal has it now.

    Attributes:
        finished: trials that are, by number.
        finished_at_s: when each of them was, seconds since 1970.
        begun: trials that there are, finished or not.
    """

    finished: tuple[FinishedTrial, ...] = ()
    finished_at_s: tuple[float, ...] = ()
    begun: int = 0


class StudyReader:
    """Reads a journal as it grows; each look reads what is new alone.

    A writer appends whole lines, or leaves one torn, which is then not read: so nothing has to be
    locked, and nothing is ever written.

    Args:
        path: the journal, which may not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._storage: JournalStorage | None = None

    def look(self) -> Seen:
        """Return what there is now; nothing where there is no study yet.

        Raises:
            InputError: the file is no journal of a study.
        """
        if not self._path.is_file():
            return Seen()
        try:
            return self._seen()
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError):
            self._storage = None
            raise InputError(
                "is not the journal of a study", where=str(self._path), remedy="start another one"
            ) from None

    def _seen(self) -> Seen:
        if self._storage is None:
            optuna.logging.set_verbosity(optuna.logging.ERROR)
            self._storage = JournalStorage(_Reading(self._path))
        studies = self._storage.get_all_studies()
        if not studies:
            return Seen()
        found = self._storage.get_all_trials(studies[0]._study_id, deepcopy=False)
        trials = sorted(found, key=lambda trial: trial.number)
        done = [trial for trial in trials if trial.state.is_finished()]
        ends = (trial.datetime_complete for trial in done)
        return Seen(
            tuple(finished_trial(trial) for trial in done),
            tuple(0.0 if end is None else end.timestamp() for end in ends),
            len(trials),
        )


class _Reading(BaseJournalBackend):
    """A journal that nobody writes through."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._starts = [0]

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:
        """Yield the entries from a number on."""
        return whole_lines(self._path, self._starts, log_number_from)

    def append_logs(self, logs: Iterable[dict[str, Any]]) -> None:
        """Refuse."""
        del logs
        raise RuntimeError("a reader never writes")
