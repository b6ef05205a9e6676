"""`Batch`: what each request brings to one step, recovered from a simulation."""

from collections.abc import Sequence
from dataclasses import dataclass

from twin.engine.run import simulate
from twin.errors import ServetwinError
from twin.scenario import Scenario
from twin.step import BatchShape, StepPlan

StepName = tuple[int, int]
"""Number of an engine core, and the how-manieth of its steps."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One step, request by request.

    Attributes:
        decodes: KV tokens that each one-token query attends to.
        chunks: (query tokens, KV tokens after the step) of every longer one.
        sampled: requests that need logits.
    """

    decodes: tuple[int, ...]
    chunks: tuple[tuple[int, int], ...]
    sampled: int

    @property
    def seqs(self) -> int:
        """Requests in it."""
        return len(self.decodes) + len(self.chunks)

    @property
    def tokens(self) -> int:
        """Tokens that the dense layers see, before any padding."""
        return len(self.decodes) + sum(query for query, _ in self.chunks)

    @property
    def kv_tokens(self) -> int:
        """Tokens of all contexts."""
        return sum(self.decodes) + sum(kv for _, kv in self.chunks)

    @property
    def contexts(self) -> tuple[int, ...]:
        """KV tokens of each request, decodes first."""
        return (*self.decodes, *(kv for _, kv in self.chunks))

    @property
    def shape(self) -> BatchShape:
        """What its duration is priced by."""
        return BatchShape(
            self.chunks,
            len(self.decodes),
            sum(self.decodes),
            max(self.decodes, default=0),
            self.sampled,
            min(self.decodes, default=0),
        )


def batch_of(plan: StepPlan) -> Batch:
    """Return the batch of a plan just scheduled (each `num_computed` is that after the step)."""
    decodes = [state.num_computed for state, tokens in plan.scheduled if tokens == 1]
    chunks = [(tokens, state.num_computed) for state, tokens in plan.scheduled if tokens > 1]
    return Batch(tuple(decodes), tuple(chunks), len(plan.samples))


def batches_of(scenario: Scenario, wanted: Sequence[StepName]) -> dict[StepName, Batch]:
    """Return the batches of some steps: the scenario again, every step taken by itself."""
    left, counts = set(wanted), dict[int, int]()
    found: dict[StepName, Batch] = {}

    def watch(core: int, plan: StepPlan) -> None:
        number = counts.get(core, 0)
        counts[core] = number + 1
        if (core, number) in left:
            left.discard((core, number))
            found[core, number] = batch_of(plan)

    simulate(scenario, engine="reference", watch=watch)
    if left:
        raise ServetwinError(
            f"step {min(left)} did not come again; this is a fault of the simulator, please "
            "report it with the scenario"
        )
    return found
