"""Hit rates of eviction policies on a trace over capacities, beside the best possible."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from twin.caching.accesses import BlockAccesses
from twin.caching.gpu_pool import GpuPool
from twin.caching.question import BELADY, CacheQuestion
from twin.caching.replay import Replayed
from twin.caching.runs import Progress, run_all

_HALVINGS = 6


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

    @property
    def pool_blocks(self) -> int:
        """Blocks of the GPU's own pool; 0: none is compared."""
        return pool_blocks(self.question.pool, self.accesses)

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
            "pool": question.pool and {**asdict(question.pool), "blocks": self.pool_blocks},
            "rows": self.as_rows(),
            "notes": list(self.notes),
        }


def default_capacities(accesses: BlockAccesses, pool: GpuPool | None = None) -> tuple[int, ...]:
    """Return from 1/64 of the distinct blocks to all of them, which is as good as infinite.

    With a GPU's pool, its size too.
    """
    distinct = accesses.num_distinct
    sizes = {max(1, distinct >> halved) for halved in range(_HALVINGS + 1)}
    return tuple(sorted(sizes | ({pool_blocks(pool, accesses)} if pool else set())))


def pool_blocks(pool: GpuPool | None, accesses: BlockAccesses) -> int:
    """Return the blocks of a trace that a GPU's pool holds, at least one; 0 without a pool."""
    return max(1, pool.kv_tokens // accesses.block_tokens) if pool else 0


def compare_policies(
    trace: str,
    accesses: BlockAccesses,
    question: CacheQuestion,
    *,
    jobs: int = 1,
    progress: Progress = lambda _done, _what: None,
) -> CacheComparison:
    """Replay a trace under every policy and the optimum at every capacity.

    Args:
        trace: its path, to be told.
        accesses: what it looks up.
        question: what to compare.
        jobs: processes; the answer does not depend on it.
        progress: hears of each replay.
    """
    found = run_all(accesses, question, jobs=jobs, progress=progress)
    replays = {
        policy: tuple(found[policy, blocks] for blocks in question.capacities_blocks)
        for policy in (*question.policies, BELADY)
    }
    return CacheComparison(
        trace, accesses, question, replays, _notes(accesses, question, replays[BELADY])
    )


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
