"""Replays of one trace under many orders and capacities, here or in several processes."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from twin.caching.accesses import BlockAccesses
from twin.caching.belady import Belady, next_uses
from twin.caching.question import BELADY, CacheQuestion
from twin.caching.replay import Present, Replayed, replay
from twin.paging.eviction import EVICTION
from twin.paging.eviction.leaf_order import LeafOrder
from twin.paging.eviction.order import EvictionOrder
from twin.paging.eviction.setup import EvictionSetup

Progress = Callable[[int, str], None]
"""Called with (replays done, the one just done or about to begin)."""

_Run = tuple[str, int]


class Replays:
    """What is needed for any replay of one trace.

    Args:
        accesses: what it looks up.
        question: what is compared.
    """

    def __init__(self, accesses: BlockAccesses, question: CacheQuestion) -> None:
        self._accesses = accesses
        self._question = question
        self._next_use = next_uses(accesses)

    def run(self, policy: str, capacity_blocks: int) -> Replayed:
        """Return what one policy, or the optimum, makes of one capacity."""

        def order(num_blocks: int, present: Present) -> EvictionOrder:
            if policy == BELADY:
                belady = Belady(num_blocks, self._next_use, lambda: present.start)
                return LeafOrder(num_blocks, belady)
            question = self._question
            parity_blocks = question.parity_tokens / self._accesses.block_tokens
            setup = EvictionSetup(num_blocks, lambda: present.now_s, question.ttl_s, parity_blocks)
            return EVICTION[policy](setup)

        return replay(self._accesses, capacity_blocks, order)


def run_all(
    accesses: BlockAccesses, question: CacheQuestion, *, jobs: int, progress: Progress
) -> dict[_Run, Replayed]:
    """Return every policy's replay and the optimum's at every capacity.

    Args:
        accesses: what is looked up.
        question: what is compared.
        jobs: processes; the answers do not depend on it.
        progress: hears of each replay.
    """
    runs = [
        (policy, blocks)
        for blocks in question.capacities_blocks
        for policy in (*question.policies, BELADY)
    ]
    if jobs < 2:
        return dict(_here(Replays(accesses, question), runs, progress))
    found: dict[_Run, Replayed] = {}
    # Fresh processes: a fork would copy whatever threads this one has.
    with ProcessPoolExecutor(
        min(jobs, len(runs)), get_context("spawn"), _begin, (accesses, question)
    ) as pool:
        for run, replayed in zip(runs, pool.map(_run, runs), strict=True):
            found[run] = replayed
            progress(len(found), _name(run))
    return found


def _here(
    replays: Replays, runs: list[_Run], progress: Progress
) -> Iterator[tuple[_Run, Replayed]]:
    for done, run in enumerate(runs):
        progress(done, _name(run))
        yield run, replays.run(*run)


def _name(run: _Run) -> str:
    return f"{run[0]}, {run[1]:,} blocks"


_REPLAYS: Replays | None = None
"""In a process of its own: what it was begun with."""


def _begin(accesses: BlockAccesses, question: CacheQuestion) -> None:
    global _REPLAYS
    _REPLAYS = Replays(accesses, question)


def _run(run: _Run) -> Replayed:
    if _REPLAYS is None:
        raise RuntimeError("the process was not begun")
    return _REPLAYS.run(*run)
