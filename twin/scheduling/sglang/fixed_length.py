"""Admission of requests whose length is known, without a prefix cache."""

from twin.scheduling.sglang.core import SglangCore
from twin.scheduling.sglang.job import Job
from twin.scheduling.sglang.prefill_budget import PrefillBudget


class FixedLengthTest:
    """Simulates the ends of all requests to see whether memory lasts.

    (SGLang 0.5.23, `PrefillAdder.add_one_req_ignore_eos`.)
    """

    def __init__(self, core: SglangCore, budget: PrefillBudget) -> None:
        self._core = core
        self._budget = budget
        self._states: list[tuple[float, int]] | None = None

    def fits(self, job: Job, admitted: list[Job]) -> bool:
        """Whether every request reaches its end if `job` is admitted after `admitted`."""
        limits, budget = self._core.limits, self._budget
        needed = limits.ceil_page(job.fill - job.prefix) + limits.page_size
        if needed > min(budget.current_left, budget.total_left):
            return False
        free = budget.current_left - needed
        states = self._with(job, admitted)
        for index, (left, occupied) in enumerate(states):
            alive = len(states) - index
            if free - left * alive <= alive:
                return False
            free += occupied
        return True

    def _with(self, job: Job, admitted: list[Job]) -> list[tuple[float, int]]:
        """Return (tokens left, tokens occupied) of all, the soonest to end first.

        Only the first candidate's list is sorted; later ones go before the first that is not
        smaller, or before the last.
        """
        if self._states is None:
            jobs = [job, *self._core.running, *admitted]
            states = [state for state in map(self._state, jobs) if state[0] > 0]
            self._states = sorted(states, key=lambda state: state[0])
            return self._states
        new = self._state(job)
        if new[0] > 0:
            last = max(len(self._states) - 1, 0)
            places = (i for i, (left, _) in enumerate(self._states) if new[0] <= left)
            self._states.insert(next(places, last), new)
        return self._states

    def _state(self, job: Job) -> tuple[float, int]:
        ratio = 1.0 if job.ignore_eos else self._core.ratio.now
        return job.max_new * ratio - job.state.num_output, job.known
