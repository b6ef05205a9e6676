"""Random batches over paged caches, with poison wherever no kernel may look."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from kernels.case import Shape


@dataclass(frozen=True, slots=True)
class PagedBatch:
    """Which blocks each sequence owns, in a pool with one block to spare.

    Attributes:
        lengths: tokens of each sequence.
        tables: int32 [seqs, max_blocks] on the CPU; entries beyond a context name the spare block.
        block_tokens: tokens to a block.
        blocks: in the pool, the spare one included.
    """

    lengths: tuple[int, ...]
    tables: torch.Tensor
    block_tokens: int
    blocks: int

    @property
    def spare(self) -> int:
        """The block that no sequence owns."""
        return self.blocks - 1

    def poison(self, cache: torch.Tensor, value: float) -> None:
        """Set what no sequence owns, in a cache [blocks, block_tokens, ...], to a value."""
        cache[self.spare] = value
        for length, table in zip(self.lengths, self.tables, strict=True):
            last, used = divmod(length, self.block_tokens)
            if used:
                cache[int(table[last]), used:] = value

    def context_lens(self, device: torch.device) -> torch.Tensor:
        """Return the lengths, int32 [seqs]."""
        return torch.tensor(self.lengths, dtype=torch.int32, device=device)


def lengths_of(seqs: int, context_tokens: int, *, ragged: bool, seed: int) -> tuple[int, ...]:
    """Return lengths of sequences: all alike, or the longest, none, one and others at random."""
    if not ragged:
        return (context_tokens,) * seqs
    random = torch.Generator().manual_seed(seed)
    others = torch.randint(0, context_tokens + 1, (seqs,), generator=random).tolist()
    return tuple([context_tokens, 0, 1, *others][:seqs])


def paged_batch(
    lengths: tuple[int, ...], block_tokens: int, seed: int, *, shuffled: bool = True
) -> PagedBatch:
    """Return a batch whose blocks lie in order, or anywhere in the pool."""
    counts = [-(-length // block_tokens) for length in lengths]
    order = torch.arange(sum(counts), dtype=torch.int32)
    if shuffled:
        random = torch.Generator().manual_seed(seed)
        order = torch.randperm(sum(counts), generator=random).to(torch.int32)
    spare = sum(counts)
    tables = torch.full((len(lengths), max([1, *counts])), spare, dtype=torch.int32)
    for table, own in zip(tables, order.split(counts), strict=True):
        table[: len(own)] = own
    return PagedBatch(lengths, tables, block_tokens, spare + 1)


def batch_of(shape: Shape, seed: int) -> PagedBatch:
    """Return the batch of a case's shape.

    Axes: seqs, context_tokens, block_tokens; ragged (1: lengths differ), ordered (1: blocks
    follow each other).
    """
    ragged = bool(shape.get("ragged"))
    lengths = lengths_of(shape["seqs"], shape["context_tokens"], ragged=ragged, seed=seed)
    return paged_batch(lengths, shape["block_tokens"], seed, shuffled=not shape.get("ordered"))


def normal(kind: torch.dtype, device: torch.device, seed: int) -> Callable[..., torch.Tensor]:
    """Return a source of Gaussian tensors of any sizes."""
    random = torch.Generator(device).manual_seed(seed)

    def draw(*sizes: int) -> torch.Tensor:
        return torch.randn(*sizes, generator=random, device=device, dtype=kind)

    return draw
