"""Hit rates of eviction policies on a trace over capacities, beside the best possible."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from twin.caching.accesses import BlockAccesses
from twin.caching.belady import Belady, next_uses
from twin.caching.replay import Present, Replayed, replay
from twin.paging.eviction import EVICTION
from twin.paging.eviction.leaf_order import LeafOrder
from twin.paging.eviction.order import EvictionOrder
from twin.paging.eviction.setup import DEFAULT_PARITY_TOKENS, DEFAULT_TTL_S, EvictionSetup

BELADY = "belady"
"""The optimum's name beside those of `EVICTION`."""

_HALVINGS = 6


@dataclass(frozen=True, slots=True)
class CacheQuestion:
    """What is compared.

    Attributes:
        policies: names in `EVICTION`, in the order in which they are shown.
        capacities_blocks: pool sizes, blocks that requests can hold; increasing.
        ttl_s: for `ttl`.
        parity_tokens: for `cost_aware`; see `SchedulerLimits.attention_parity_tokens`.
        llm: whose KV the blocks are; empty: bytes are not told.
        token_bytes: KV bytes of a token over all GPUs; 0: not told.
    """

    policies: tuple[str, ...]
    capacities_blocks: tuple[int, ...]
    ttl_s: float = DEFAULT_TTL_S
    parity_tokens: float = DEFAULT_PARITY_TOKENS
    llm: str = ""
    token_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CacheComparison:
    """What the replays gave.

    Attributes:
        trace: its path.
        accesses: what was looked up.
        question: what was asked.
        replays: by policy (the optimum under `BELADY`), in the order of `capacities_blocks`.
        notes: what a reader must know, one sentence each.
    """

    trace: str
    accesses: BlockAccesses
    question: CacheQuestion
    replays: dict[str, tuple[Replayed, ...]]
    notes: tuple[str, ...]

    def hit_rate(self, policy: str, place: int) -> float:
        """Return the share of all look-ups that hit, at the capacity of that place."""
        return self.replays[policy][place].hits / self.accesses.num_lookups

    def below_optimum(self, policy: str, place: int) -> float:
        """Return by how much a policy's hit rate lies below the optimum's, a share of look-ups."""
        return self.hit_rate(BELADY, place) - self.hit_rate(policy, place)

    def capacity_bytes(self, place: int) -> int | None:
        """Return the KV bytes of a capacity; None: no network was named."""
        question = self.question
        tokens = question.capacities_blocks[place] * self.accesses.block_tokens
        return tokens * question.token_bytes if question.token_bytes else None

    def as_rows(self) -> list[dict[str, Any]]:
        """Return one flat row a capacity and policy."""
        return [
            {
                "capacity_blocks": blocks,
                "capacity_tokens": blocks * self.accesses.block_tokens,
                "capacity_bytes": self.capacity_bytes(place),
                "policy": policy,
                "hits": replays[place].hits,
                "hit_rate": self.hit_rate(policy, place),
                "below_belady": self.below_optimum(policy, place),
                "refused_requests": replays[place].refused,
            }
            for place, blocks in enumerate(self.question.capacities_blocks)
            for policy, replays in self.replays.items()
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the answer as plain data."""
        accesses, question = self.accesses, self.question
        return {
            "trace": self.trace,
            "requests": accesses.num_requests,
            "block_tokens": accesses.block_tokens,
            "own_blocks": accesses.own_blocks,
            "lookups": accesses.num_lookups,
            "distinct_blocks": accesses.num_distinct,
            "reuse": accesses.reuse,
            "largest_request_blocks": accesses.largest,
            "llm": question.llm or None,
            "ttl_s": question.ttl_s,
            "rows": self.as_rows(),
            "notes": list(self.notes),
        }


def default_capacities(accesses: BlockAccesses) -> tuple[int, ...]:
    """Return from 1/64 of the distinct blocks to all of them, which is as good as infinite."""
    distinct = accesses.num_distinct
    return tuple(sorted({max(1, distinct >> halved) for halved in range(_HALVINGS + 1)}))


def compare_policies(
    trace: str,
    accesses: BlockAccesses,
    question: CacheQuestion,
    progress: Callable[[int, str], None] | None = None,
) -> CacheComparison:
    """Replay a trace under every policy and the optimum at every capacity.

    Args:
        trace: its path, to be told.
        accesses: what it looks up.
        question: what to compare.
        progress: called with (replays done, what comes next).
    """
    builders = _builders(accesses, question)
    replays: dict[str, list[Replayed]] = {name: [] for name in builders}
    done = 0
    for blocks in question.capacities_blocks:
        for name, build in builders.items():
            if progress is not None:
                progress(done, f"{name}, {blocks:,} blocks")
            replays[name].append(replay(accesses, blocks, build))
            done += 1
    gathered = {name: tuple(found) for name, found in replays.items()}
    notes = _notes(accesses, question, gathered[BELADY])
    return CacheComparison(trace, accesses, question, gathered, notes)


def _builders(
    accesses: BlockAccesses, question: CacheQuestion
) -> dict[str, Callable[[int, Present], EvictionOrder]]:
    following = next_uses(accesses)

    def optimum(num_blocks: int, present: Present) -> EvictionOrder:
        return LeafOrder(num_blocks, Belady(num_blocks, following, lambda: present.start))

    def of(name: str) -> Callable[[int, Present], EvictionOrder]:
        def build(num_blocks: int, present: Present) -> EvictionOrder:
            parity_blocks = question.parity_tokens / accesses.block_tokens
            setup = EvictionSetup(num_blocks, lambda: present.now_s, question.ttl_s, parity_blocks)
            return EVICTION[name](setup)

        return build

    return {**{name: of(name) for name in question.policies}, BELADY: optimum}


def _notes(
    accesses: BlockAccesses, question: CacheQuestion, replays: Sequence[Replayed]
) -> tuple[str, ...]:
    notes = []
    if accesses.own_blocks:
        notes.append("Partial last blocks of prompts count as blocks, as the trace names them; "
                     "an engine caches full ones only.")  # fmt: skip
    refusing = [
        f"{found.refused:,} at {blocks:,}"
        for blocks, found in zip(question.capacities_blocks, replays, strict=True)
        if found.refused
    ]
    if refusing:
        notes.append("Requests larger than the pool are refused, and all their look-ups miss: "
                     f"{', '.join(refusing)} blocks.")  # fmt: skip
    return tuple(notes)
