"""What a block size trades: blocks, tokens lost in last blocks, how finely prefixes are shared."""

from dataclasses import dataclass

import numpy as np

from app.answers.capacity.deployment import Deployment, deployments
from app.answers.capacity.lengths import Lengths, lengths_of
from app.answers.setup import Setup
from twin.llm.capacity import KvCapacity
from twin.report.numbers import count, percent, significant

SIZES = (1, 8, 16, 32, 64, 128)


@dataclass(frozen=True, slots=True)
class BlockSize:
    """One size at the scenario's lengths.

    Attributes:
        tokens: a block.
        own: it is the scenario's.
        blocks: that requests can hold.
        lost_tokens: of the last block of a request, mean.
        lost_share: of all KV that requests hold at their ends.
        at_once: requests of the mean context.
        shared_share: of prompt tokens that are in full blocks which an earlier request held.
    """

    tokens: int
    own: bool
    blocks: int
    lost_tokens: float
    lost_share: float
    at_once: int
    shared_share: float


def block_sizes(setup: Setup, pool: str = "") -> tuple[BlockSize, ...]:
    """Return what each block size gives.

    Args:
        setup: what is asked.
        pool: the kind of engine that is meant; unknown: the first.

    Raises:
        InputError: its parts do not go together, or its requests have no lengths.
    """
    found, inputs = deployments(setup)
    one = found.get(pool) or next(iter(found.values()))
    lengths = lengths_of(inputs.workload, one.file.seed, one.policy().max_model_len)
    own = one.policy().block_size
    sizes = sorted({own, *(size for size in SIZES if size > 1 or one.file.engine.name == "sglang")})
    return tuple(_at(one, lengths, size, own) for size in sizes)


def _at(one: Deployment, lengths: Lengths, size: int, own: int) -> BlockSize:
    found: KvCapacity = one.capacity(block_size=size)
    blocks, held = one.held(found), lengths.held
    taken = -(-held // size) * size
    lost = taken - held
    shared = np.sum(lengths.shared // size * size) / np.sum(lengths.prompt)
    return BlockSize(
        tokens=size,
        own=size == own,
        blocks=blocks,
        lost_tokens=float(lost.mean()),
        lost_share=float(lost.sum() / taken.sum()),
        at_once=blocks // -(-lengths.mean // size),
        shared_share=float(shared),
    )


def block_table(sizes: tuple[BlockSize, ...]) -> dict[str, list[str]]:
    """Return the columns of the table on the page, by heading."""
    return {
        "Tokens a block": [f"{s.tokens} (now)" if s.own else str(s.tokens) for s in sizes],
        "Blocks": [count(s.blocks) for s in sizes],
        "Lost a request (tokens)": [significant(s.lost_tokens, 2) for s in sizes],
        "Lost of KV": [percent(s.lost_share) for s in sizes],
        "Requests at mean context": [count(s.at_once) for s in sizes],
        "Prompt that can be shared": [percent(s.shared_share) for s in sizes],
    }


def block_sentence(sizes: tuple[BlockSize, ...], caching: bool) -> str:
    """Return what the scenario's own size costs beside the others, one sentence.

    Args:
        sizes: at least one of them the scenario's own.
        caching: prefix caching is on.
    """
    now = next(size for size in sizes if size.own)
    finest, coarsest = sizes[0], sizes[-1]
    words = f"Blocks of {now.tokens} tokens lose {percent(now.lost_share)} of KV to last blocks"
    if coarsest is not now:
        words += f", {coarsest.tokens} would lose {percent(coarsest.lost_share)}"
    if finest.shared_share == 0:
        return f"{words}; prompts share nothing, whatever the size."
    here, there = percent(now.shared_share), percent(coarsest.shared_share)
    words += f"; {here} of prompt tokens can be shared, "
    words += "whatever the size" if here == there else f"with {coarsest.tokens} it is {there}"
    return words + ("." if caching else "; prefix caching is off, so that none is.")
