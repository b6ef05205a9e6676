"""The blocks that a trace's prompts look up, request by request."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twin.errors import InputError
from twin.workload.trace import Trace

DEFAULT_BLOCK_TOKENS = 16
"""Where a trace has no blocks of its own: vLLM's default."""


@dataclass(frozen=True, slots=True)
class BlockAccesses:
    """Every block look-up of a trace.

    Attributes:
        keys: dense chained keys, all requests in a row, each in token order; shape (look-ups,).
            Equal keys stand for equal content up to the end of that block.
        offsets: request i looks up `keys[offsets[i]:offsets[i + 1]]`; shape (requests + 1,).
        arrival_s: shape (requests,).
        block_tokens: tokens a block; the last one of a prompt may have fewer if `own_blocks`.
        own_blocks: blocks are those that the trace tells, else full ones of the prompts.
        num_distinct: different keys.
    """

    keys: NDArray[np.int64]
    offsets: NDArray[np.int64]
    arrival_s: NDArray[np.float64]
    block_tokens: int
    own_blocks: bool
    num_distinct: int

    @property
    def num_requests(self) -> int:
        """Requests."""
        return int(self.arrival_s.size)

    @property
    def num_lookups(self) -> int:
        """Blocks looked up."""
        return int(self.keys.size)

    @property
    def reuse(self) -> float:
        """Share of look-ups whose block was looked up before: the most any cache can hit."""
        return 1 - self.num_distinct / self.num_lookups if self.num_lookups else 0.0

    @property
    def largest(self) -> int:
        """Most blocks of one request."""
        return int(np.diff(self.offsets).max())


def accesses_of(trace: Trace, block_tokens: int | None = None) -> BlockAccesses:
    """Return what a trace's prompts look up.

    Args:
        trace: with prefix identity.
        block_tokens: tokens a block, of which only full ones count, as engines cache no others;
            None: the trace's own blocks, its prompts' partial last ones included, or
            `DEFAULT_BLOCK_TOKENS` where it has none.

    Raises:
        InputError: the trace does not tell what its requests share, or has no block that size.
    """
    table = trace.segments
    if table is None or not table.ids.size:
        raise InputError(
            "does not tell which prompts share a prefix",
            where=trace.path,
            remedy="give a trace with block identities, as Mooncake's hash_ids",
        )
    if block_tokens is None and table.block_tokens is not None:
        keys, offsets, size, own = table.ids, table.offsets, table.block_tokens, True
    else:
        size, own = block_tokens or DEFAULT_BLOCK_TOKENS, False
        keys, offsets = _full_blocks(trace, size)
    if not keys.size:
        raise InputError(f"no prompt fills a block of {size} tokens", where=trace.path,
                         remedy="give a smaller block size")  # fmt: skip
    distinct, dense = np.unique(keys, return_inverse=True)
    return BlockAccesses(dense, offsets, trace.arrival_s, size, own, int(distinct.size))


def _full_blocks(trace: Trace, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the keys of the full blocks of every prompt, and offsets by request."""
    table = trace.segments
    if table is None:
        raise ValueError("no prefix identity")
    counts = trace.prompt_tokens // size
    offsets = np.concatenate(([0], np.cumsum(counts)))
    contents = table.contents(trace.prompt_tokens, np.zeros_like(trace.prompt_tokens))
    keys = np.empty(offsets[-1], dtype=np.int64)
    for content, start, end, tokens in zip(
        contents, offsets.tolist(), offsets[1:].tolist(), trace.prompt_tokens.tolist(), strict=False
    ):
        keys[start:end] = content.block_keys(size, tokens)
    return keys, offsets
