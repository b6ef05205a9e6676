"""The GPUs of a replica on simulated time: when a launched batch starts and ends.

One stage runs one batch after another. In a pipeline, batch k of those with tokens starts on stage
s once that stage is done with batch k-1 and the hidden states have come from stage s-1:

    start[s, k] = max(end[s-1, k] + transfer, end[s, k-1]);  end[s, k] = start[s, k] + d[s, k]

with the launch in place of the former on the first stage. So bubbles appear by themselves. Under
asynchronous scheduling the first stage also waits for the tokens that were sampled `stages`
schedule calls ago, empty ones counted: vLLM's workers take them in at that pace whether this batch
needs them or not (0.33.0, `PPHandler`).
"""

from collections import deque
from typing import Protocol

from twin.llm.decode_run import DecodeTimes
from twin.llm.pipeline_timer import PipelineTimer
from twin.llm.step_time import Split, StepTime
from twin.step import BatchShape


class Timer(Protocol):
    """Tells how long a batch takes."""

    def time(self, shape: BatchShape) -> StepTime:
        """Return the duration of one forward pass."""
        ...


class DecodeTimer(Timer, Protocol):
    """A timer that knows the steps of a batch that only decodes ahead."""

    def decode_run(self, first: BatchShape, steps: int) -> DecodeTimes:
        """Return the times of so many steps of one batch, each as `time` gives it.

        Args:
            first: shape of the first; in each further one every context is a token longer.
            steps: how many.
        """
        ...


class Gpus(Protocol):
    """What batches run on.

    `stages`: groups of GPUs that a batch passes; with more than one, batches overlap.
    """

    stages: int

    def run(self, shape: BatchShape, launched_s: float, call: int) -> tuple[float, float, StepTime]:
        """Put a batch on the GPUs, after all put there before.

        Args:
            shape: what runs.
            launched_s: when the host has launched it.
            call: number of its schedule call.

        Returns:
            Start on the first stage, end on the last, and the time it keeps a GPU busy: with
            several stages the mean over them.
        """
        ...

    def reset(self) -> None:
        """Drop whatever runs: they are idle."""
        ...


class OneStage:
    """GPUs that all work on the same batch."""

    stages = 1

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._free_s = 0.0

    def run(
        self,
        shape: BatchShape,
        launched_s: float,
        call: int,  # noqa: ARG002
    ) -> tuple[float, float, StepTime]:
        """See `Gpus.run`."""
        duration = self._timer.time(shape)
        start_s = max(launched_s, self._free_s)
        end_s = self._free_s = start_s + duration.seconds
        return start_s, end_s, duration

    def reset(self) -> None:
        """See `Gpus.reset`."""
        self._free_s = 0.0

    def busy_until(self, time_s: float) -> None:
        """Take note of batches that were put there by other means."""
        self._free_s = time_s


class Pipeline:
    """Stages that batches pass one after another.

    Args:
        timer: times a batch on each stage.
        feeds_back: sampled tokens return to the first stage on the GPUs (asynchronous
            scheduling); else with the next schedule call, which has waited for them.
    """

    def __init__(self, timer: PipelineTimer, *, feeds_back: bool) -> None:
        self.stages = len(timer.stages)
        self._timer = timer
        self._feeds_back = feeds_back
        self._free_s = [0.0] * self.stages
        self._sampled: deque[tuple[int, float]] = deque()

    def run(self, shape: BatchShape, launched_s: float, call: int) -> tuple[float, float, StepTime]:
        """See `Gpus.run`."""
        times = self._timer.times(shape)
        transfer_s = self._timer.transfer_s(shape)
        ready_s = max(launched_s, self._tokens_back_s(call))
        start_s = max(ready_s, self._free_s[0])
        for stage, duration in enumerate(times):
            begin_s = max(ready_s, self._free_s[stage])
            end_s = self._free_s[stage] = begin_s + duration.seconds
            ready_s = end_s + transfer_s
        if self._feeds_back and shape.sampled_seqs:
            self._sampled.append((call, end_s + self._timer.feedback_s(shape)))
        return start_s, end_s, _mean(times)

    def reset(self) -> None:
        """See `Gpus.reset`."""
        self._free_s = [0.0] * self.stages
        self._sampled.clear()

    def _tokens_back_s(self, call: int) -> float:
        """When the tokens sampled `stages` calls before `call` are on the first stage."""
        sampled, wanted = self._sampled, call - self.stages
        while sampled and sampled[0][0] < wanted:
            sampled.popleft()
        return sampled[0][1] if sampled and sampled[0][0] == wanted else 0.0


def _mean(times: list[StepTime]) -> StepTime:
    share = 1 / len(times)
    by_bound = _sum([time.by_bound for time in times], share)
    by_source = _sum([time.by_source for time in times], share)
    seconds = sum(time.seconds for time in times) * share
    return StepTime(seconds, by_bound.index(max(by_bound)), by_bound, by_source)


def _sum(splits: list[Split], factor: float) -> Split:
    first, second, third, fourth = (sum(column) * factor for column in zip(*splits, strict=True))
    return first, second, third, fourth
