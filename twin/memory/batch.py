"""The fullest decode step that a scenario's requests make: whose KV is looked at."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twin.errors import InputError
from twin.scenario import Scenario

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class DecodeBatch:
    """Sequences that decode together.

    Attributes:
        lengths: KV tokens of each, halfway through its answer, in order of arrival.
        known: requests they were taken from.
    """

    lengths: Ints
    known: int

    @property
    def seqs(self) -> int:
        """How many sequences."""
        return int(self.lengths.size)

    @property
    def tokens(self) -> int:
        """KV tokens of all of them."""
        return int(self.lengths.sum())

    def blocks(self, block_tokens: int) -> int:
        """Blocks that they hold."""
        return int(blocks_of(self.lengths, block_tokens).sum())

    def tail_waste(self, block_tokens: int) -> float:
        """Empty share of those blocks."""
        held = self.blocks(block_tokens) * block_tokens
        return (held - self.tokens) / held


def blocks_of(lengths: Ints, block_tokens: int) -> Ints:
    """Return the blocks that each of some lengths takes."""
    return -(-lengths // block_tokens)


def known_lengths(scenario: Scenario) -> Ints:
    """Return the lengths of the requests known from the start, halfway through their answers.

    Raises:
        InputError: none is known.
    """
    longest = scenario.policy.max_model_len
    seed = np.random.SeedSequence(scenario.file.seed)
    requests = scenario.workload.source(seed, longest).start()
    lengths = [
        min(request.prompt_tokens + request.output_tokens // 2, longest)
        for request in requests
        if request.prompt_tokens < longest
    ]
    if not lengths:
        raise InputError("no request fits the context", where="workload", remedy="shorten prompts")
    return np.array(lengths, dtype=np.int64)


def fullest_batch(scenario: Scenario, rooms: list[tuple[int, int]]) -> DecodeBatch:
    """Return the first requests that decode together in every pool that is compared.

    Args:
        scenario: whose requests, and whose most sequences a step.
        rooms: (tokens a block, blocks) of each pool.
    """
    lengths = known_lengths(scenario)
    most = min(lengths.size, scenario.policy.max_num_seqs or lengths.size)
    for block_tokens, num_blocks in rooms:
        held = np.cumsum(blocks_of(lengths, block_tokens))
        most = min(most, int(np.searchsorted(held, num_blocks, side="right")))
    if not most:
        raise InputError(
            f"the first request of {lengths[0]:,} tokens does not fit the smallest pool",
            where="workload",
            remedy="use a larger GPU or tp",
        )
    return DecodeBatch(lengths[:most], int(lengths.size))
