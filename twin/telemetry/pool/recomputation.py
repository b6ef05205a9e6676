"""What preemptions cost: the tokens that are computed twice, and the GPU time that takes.

A preempted request loses its KV and computes prompt and answer again as one prompt, as far as the
prefix cache does not still hold it. What it computes below the length that it had before is work
done twice. That is counted exactly, token by token, from the plans of all steps. The time is the
difference between each such step and the same step without those tokens, priced by the timer that
the run itself uses: what the step would have been shorter by. What the run would have been without
any preemption is another question, which only more memory answers.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from twin.engine.in_flight import batch_shape
from twin.engine.result import SimulationResult
from twin.engine.timers import BatchTimer
from twin.llm.pipeline_timer import PipelineTimer
from twin.request import Request, RequestState
from twin.step import BatchShape, StepPlan

StepName = tuple[int, int]
"""(Engine core, number of a step that ran tokens on it, from 0)."""


@dataclass(slots=True)
class Preemption:
    """One loss of a request's KV.

    Attributes:
        request: who lost it.
        step: the one that was launched when it did.
        since: as `step`, or of an earlier loss that it had not made up for.
        reached_tokens: the longest context that it had had in KV.
        recomputed_tokens: of these, computed again (before the next loss, if there is one).
        recomputed_s: seconds that the replica's GPUs took for that.
        back: the step that brought it to where it had been; None: none did.
    """

    request: Request
    step: StepName
    since: StepName
    reached_tokens: int
    recomputed_tokens: int = 0
    recomputed_s: float = 0.0
    back: StepName | None = None


@dataclass(frozen=True, slots=True)
class _TwiceDone:
    """A step that computed tokens again: its batch, and the same without them."""

    core: int
    shape: BatchShape
    without: BatchShape
    tokens: list[tuple[Preemption, int]]


class Recomputation:
    """Follows preempted requests; a plan watcher of `twin.engine.run.simulate`.

    Attributes:
        preemptions: in order of time.
    """

    def __init__(self) -> None:
        self.preemptions: list[Preemption] = []
        self._steps = Counter[int]()
        self._context: dict[RequestState, int] = {}
        self._open: dict[RequestState, Preemption] = {}
        self._twice_done: list[_TwiceDone] = []

    def __call__(self, core: int, plan: StepPlan) -> None:
        """Take note of a step; plans come in order on each engine core."""
        step = core, self._steps[core]
        self._steps[core] += 1
        context = self._context
        for state in plan.preempted:
            self._lose(state, step, context.pop(state, 0))
        again = self._again(plan, step) if self._open else []
        if again:
            redone = dict(again)
            kept = [(s, t - redone.get(s, 0)) for s, t in plan.scheduled if t > redone.get(s, 0)]
            self._twice_done.append(
                _TwiceDone(
                    core,
                    batch_shape(plan),
                    batch_shape(replace(plan, scheduled=kept)),
                    [(self._open[state], tokens) for state, tokens in again],
                )
            )
        for state, _ in plan.scheduled:
            context[state] = state.num_computed
        for state, _ in again:
            if state.num_computed >= self._open[state].reached_tokens:
                del self._open[state]
        for state in plan.finished_sent:
            context.pop(state, None)

    def _lose(self, state: RequestState, step: StepName, context_tokens: int) -> None:
        before = self._open.get(state)
        lost = Preemption(state.request, step, step, context_tokens)
        if before is not None:
            lost.since = before.since
            lost.reached_tokens = max(context_tokens, before.reached_tokens)
        self.preemptions.append(lost)
        self._open[state] = lost

    def _again(self, plan: StepPlan, step: StepName) -> list[tuple[RequestState, int]]:
        """Return (request, tokens it had computed before) of a plan, and count them."""
        found = []
        for state, tokens in plan.scheduled:
            lost = self._open.get(state)
            if lost is None:
                continue
            end = state.num_computed
            redone = max(0, min(end, lost.reached_tokens) - (end - tokens))
            lost.recomputed_tokens += redone
            if end >= lost.reached_tokens:
                lost.back = step
            found.append((state, redone))
        return found

    def price(self, timer_of: Callable[[int], BatchTimer]) -> None:
        """Work out every `recomputed_s`.

        Args:
            timer_of: gives the timer of an engine core's batches.
        """
        for step in self._twice_done:
            total = sum(tokens for _, tokens in step.tokens)
            if not total:
                continue
            timer = timer_of(step.core)
            spent_s = _seconds(timer, step.shape) - _seconds(timer, step.without)
            for lost, tokens in step.tokens:
                # A measured table may make a larger batch a little quicker; time is not won.
                lost.recomputed_s += max(0.0, spent_s) * tokens / total
        self._twice_done.clear()


def _seconds(timer: BatchTimer, shape: BatchShape) -> float:
    """Return how long a batch keeps a replica's GPUs busy; of stages the mean."""
    if not shape.num_tokens:
        return 0.0
    if isinstance(timer, PipelineTimer):
        times = timer.times(shape)
        return sum(time.seconds for time in times) / len(times)
    return timer.time(shape).seconds


def stalled_s(lost: Preemption, when: Callable[[StepName], tuple[float, float]]) -> float:
    """Return from the loss of its KV until a request was back where it had been; NaN: it was not.

    Args:
        lost: the preemption.
        when: gives (scheduled, end) of a step.
    """
    return math.nan if lost.back is None else when(lost.back)[1] - when(lost.since)[0]


def step_times(result: SimulationResult) -> Callable[[StepName], tuple[float, float]]:
    """Return what gives (scheduled, end) of a step by its name; the run has recorded all steps."""
    steps = result.steps
    rows = {core: (steps.replica == core).nonzero()[0] for core in range(result.replicas)}

    def when(step: StepName) -> tuple[float, float]:
        row = rows[step[0]][step[1]]
        return float(steps.scheduled_s[row]), float(steps.end_s[row])

    return when
