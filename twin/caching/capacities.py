"""Pool sizes as users write them: blocks, bytes of KV, or all that the trace has."""

from twin.caching.accesses import BlockAccesses
from twin.errors import InputError
from twin.units import parse_bytes

MOST_BLOCKS = 10_000_000
"""Largest pool that is replayed, as `twin.policy.MAX_GPU_BLOCKS`."""

_WHERE = "--capacities"


GPU = "gpu"
"""The entry that stands for a GPU's own pool."""


def capacities_from(
    text: str, accesses: BlockAccesses, token_bytes: int, own_blocks: int = 0
) -> tuple[int, ...]:
    """Return the pool sizes in a comma-separated list, in blocks, increasing.

    Args:
        text: each is a number of blocks, a size like `80GiB`, `all` for every distinct block, or
            `gpu` for a GPU's own pool.
        accesses: what is looked up.
        token_bytes: KV bytes of a token; 0: unknown.
        own_blocks: of the GPU's pool; 0: there is none.

    Raises:
        InputError: an entry is none of these, holds no block or too many.
    """
    entries = names_in(text)
    found = {own_blocks} if GPU in entries and own_blocks else set[int]()
    if GPU in entries and not found:
        raise InputError("the network fits on no number of these GPUs", where=_WHERE,
                         remedy="name others with --llm and --gpu")  # fmt: skip
    found |= {_blocks(entry, accesses, token_bytes) for entry in entries if entry != GPU}
    return tuple(sorted(found))


def names_in(text: str) -> list[str]:
    """Return the entries of a comma-separated list."""
    return [entry.strip() for entry in text.split(",")]


def _blocks(entry: str, accesses: BlockAccesses, token_bytes: int) -> int:
    if entry == "all":
        return accesses.num_distinct
    if entry.isdecimal():
        blocks = int(entry)
    else:
        blocks = _of_bytes(parse_bytes(entry, where=_WHERE), entry, accesses, token_bytes)
    if not 0 < blocks <= MOST_BLOCKS:
        raise InputError(
            f"{entry!r} is {blocks:,} blocks",
            where=_WHERE,
            remedy=f"give 1 to {MOST_BLOCKS:,} blocks of {accesses.block_tokens} tokens",
        )
    return blocks


def _of_bytes(num_bytes: int, entry: str, accesses: BlockAccesses, token_bytes: int) -> int:
    if not token_bytes:
        raise InputError(
            f"{entry!r} is a size, and no network says what a token takes",
            where=_WHERE,
            remedy="name one with --llm, or give blocks",
        )
    return num_bytes // (token_bytes * accesses.block_tokens)
