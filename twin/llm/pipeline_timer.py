"""How long a batch takes on each stage of a pipeline, and between two stages."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hwmodels.ops import Collective, OpCost
from twin.llm.arch import ModelArch
from twin.llm.step_time import StepTime
from twin.step import BatchShape

_ACTIVATION_BYTES = 2  # bf16
_TOKEN_BYTES = 8  # int64


class StageTimer(Protocol):
    """Tells how long a batch takes on one stage."""

    def time(self, shape: BatchShape) -> StepTime:
        """Return the duration on that stage."""
        ...


@dataclass(frozen=True, slots=True)
class StageLink:
    """What lies between two stages.

    Attributes:
        arch: the whole network.
        tp: ranks of a stage; each sends its share, then the receivers gather.
        cost: prices a collective.
    """

    arch: ModelArch
    tp: int
    cost: Callable[[Collective], OpCost]

    def transfer_s(self, tokens: int) -> float:
        """Return the seconds from a stage's end to the start of the next one's work.

        Hidden states and the residual stream, each a message of its own.
        (vLLM 0.33.0, `GroupCoordinator.isend_tensor_dict`.)
        """
        tensor_bytes = float(tokens * self.arch.hidden_size * _ACTIVATION_BYTES)
        seconds = self.cost(Collective("send_recv", 2 * tensor_bytes / self.tp, 2)).seconds
        if self.tp > 1:
            gather = Collective("all_gather", tensor_bytes, self.tp, repeat=2)
            seconds += self.cost(gather).seconds
        return seconds

    def feedback_s(self, sampled_seqs: int) -> float:
        """Return the seconds that sampled tokens take from the last stage to the first."""
        return self.cost(Collective("send_recv", float(sampled_seqs * _TOKEN_BYTES), 2)).seconds


class PipelineTimer:
    """Times a batch on every stage of a replica.

    Args:
        stages: a timer for each stage, first to last.
        link: what lies between them.
    """

    def __init__(self, stages: Sequence[StageTimer], link: StageLink) -> None:
        self.stages = tuple(stages)
        self._link = link
        self._transfers: dict[int, float] = {}
        self._feedbacks: dict[int, float] = {}

    def times(self, shape: BatchShape) -> list[StepTime]:
        """Return the duration on each stage."""
        return [stage.time(shape) for stage in self.stages]

    def transfer_s(self, shape: BatchShape) -> float:
        """Return what passes between two stages; it keeps neither of them busy."""
        tokens = shape.num_tokens
        seconds = self._transfers.get(tokens)
        if seconds is None:
            seconds = self._transfers[tokens] = self._link.transfer_s(tokens)
        return seconds

    def feedback_s(self, shape: BatchShape) -> float:
        """Return what passes until the first stage has the tokens that the last one sampled."""
        sampled = shape.sampled_seqs
        seconds = self._feedbacks.get(sampled)
        if seconds is None:
            seconds = self._feedbacks[sampled] = self._link.feedback_s(sampled)
        return seconds
