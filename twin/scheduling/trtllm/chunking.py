"""How the prompt tokens of a step are divided among contexts; one function a policy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is left of a prompt.

    Attributes:
        remaining: tokens not computed yet.
        reusable: those of them believed to be in the cache (first chunk, stratum main; else 0).
    """

    remaining: int
    reusable: int = 0

    def cost(self, chunk: int) -> int:
        """Return the tokens the network computes for a chunk of that size."""
        if not self.reusable or self.reusable + chunk < self.remaining:
            return chunk
        return max(1, self.remaining - self.reusable)


Chunking = Callable[[Sequence[Prompt], int, int], list[int]]
"""(prompts in order, token capacity, chunk unit) to a chunk for each; 0: not in this step."""


def first_come_first_served(prompts: Sequence[Prompt], capacity: int, unit: int) -> list[int]:
    """Give each in turn what is left; one that is cut is rounded down to the unit."""
    chunks = []
    for prompt in prompts:
        chunk = min(capacity, prompt.remaining)
        if chunk < prompt.remaining:
            chunk -= chunk % unit
        if chunk:
            capacity -= prompt.cost(chunk)
        chunks.append(chunk)
    return chunks


def equal_progress(prompts: Sequence[Prompt], capacity: int, unit: int) -> list[int]:
    """Give one unit each, round after round, while it fits and somebody advances."""
    chunks, costs = [0] * len(prompts), [0] * len(prompts)
    used, advanced = 0, True
    while advanced and used < capacity:
        advanced = False
        for place, prompt in enumerate(prompts):
            chunk = min(chunks[place] + unit, prompt.remaining)
            if chunk == chunks[place]:
                continue
            cost = prompt.cost(chunk)
            if used + cost - costs[place] > capacity:
                continue
            used += cost - costs[place]
            chunks[place], costs[place] = chunk, cost
            advanced = True
    return chunks


CHUNKING: dict[str, Chunking] = {
    "FIRST_COME_FIRST_SERVED": first_come_first_served,
    "EQUAL_PROGRESS": equal_progress,
}
"""`scheduler_config.context_chunking_policy` to its function."""
