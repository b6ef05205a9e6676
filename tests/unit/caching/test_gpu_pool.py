"""A GPU's own pool among the sizes compared, and the sentence that sums a comparison up."""

from pathlib import Path

import pytest

from tests.unit.caching.traces import SESSIONS, written
from twin.caching.accesses import BlockAccesses, accesses_of
from twin.caching.capacities import capacities_from
from twin.caching.comparison import CacheComparison, compare_policies, default_capacities
from twin.caching.gpu_pool import GpuPool, gpu_pool
from twin.caching.question import BELADY, CacheQuestion
from twin.caching.replay import Replayed
from twin.errors import InputError
from twin.load.capacity_question import CapacityQuestion, answer
from twin.paging.eviction import EVICTION
from twin.report.cache import facts_lines
from twin.report.cache_summary import summary_line
from twin.workload.readers import read_trace


@pytest.fixture
def accesses(tmp_path: Path) -> BlockAccesses:
    return accesses_of(read_trace(written(tmp_path, SESSIONS)))


def test_the_pool_is_what_twin_capacity_says(accesses: BlockAccesses) -> None:
    found = gpu_pool(None, None, None, Path())
    assert found is not None
    asked = answer(CapacityQuestion(model="llama-3.1-8b", gpu="h100_sxm"))
    assert (found.tp, found.kv_tokens) == (1, asked.chosen.kv_tokens)
    assert asked.chosen.kv_tokens // 512 in default_capacities(accesses, found)


def test_a_large_network_takes_the_fewest_gpus_that_it_fits_on() -> None:
    found = gpu_pool("llama-3.1-70b", "h100_sxm", "fp8", Path())
    assert found is not None
    assert found.tp > 1
    assert found.llm == "llama-3.1-70b"


def test_gpu_is_an_entry_of_the_list(accesses: BlockAccesses) -> None:
    assert capacities_from("gpu, 2", accesses, 0, 4) == (2, 4)
    with pytest.raises(InputError, match="fits on no number of these GPUs"):
        capacities_from("gpu,2", accesses, 0, 0)


def test_the_pool_is_told(accesses: BlockAccesses) -> None:
    pool = GpuPool("a-network", "a_gpu", 2, 4 * 512 + 1)
    sizes = default_capacities(accesses, pool)
    found = compare_policies("t", accesses, CacheQuestion(("lru",), sizes, pool=pool))
    assert found.pool_blocks == 4
    assert found.as_dict()["pool"] == {
        "llm": "a-network", "gpu": "a_gpu", "tp": 2, "kv_tokens": 2049, "blocks": 4,
    }  # fmt: skip
    assert "4 blocks are the KV pool of 2 x a_gpu together with a-network" in facts_lines(found)[-1]


def compared(
    accesses: BlockAccesses, hits: dict[str, tuple[int, int]], pool: GpuPool | None = None
) -> CacheComparison:
    """Return a comparison at 2 and 4 blocks with given hits of 15 look-ups."""
    question = CacheQuestion(tuple(p for p in hits if p != BELADY), (2, 4), pool=pool)
    replays = {name: tuple(Replayed(n, 0) for n in both) for name, both in hits.items()}
    return CacheComparison("t", accesses, question, replays, ())


def test_the_best_gain_over_lru_is_told_with_the_distance_left(accesses: BlockAccesses) -> None:
    hits = {"lru": (3, 6), "fifo": (2, 6), "arc": (3, 9), BELADY: (6, 12)}
    assert summary_line(compared(accesses, hits)) == (
        "Best: arc, 20.00 points of hit rate over lru at 4 blocks (60.00 against 40.00 %); "
        "Belady's optimum lies 20.00 points above that."
    )
    pool = GpuPool("a-network", "a_gpu", 1, 2 * 512)
    assert summary_line(compared(accesses, hits, pool)).endswith(
        "; in the GPU's own pool (2 blocks): none over lru, the optimum 20.00 more."
    )


def test_no_gain_and_no_lru_are_sentences_of_their_own(accesses: BlockAccesses) -> None:
    assert summary_line(compared(accesses, {"lru": (3, 6), "fifo": (3, 3), BELADY: (6, 6)})) == (
        "No policy gains anything over lru at these sizes; Belady's optimum lies at most 20.00 "
        "points above it (2 blocks)."
    )
    assert summary_line(compared(accesses, {"fifo": (3, 3), "arc": (6, 5), BELADY: (6, 6)})) == (
        "Nearest to Belady's optimum: arc, at most 6.67 points below it."
    )
    assert summary_line(compared(accesses, {BELADY: (6, 6)})) == ""


def test_a_replayed_comparison_sums_up_in_one_sentence(accesses: BlockAccesses) -> None:
    question = CacheQuestion(tuple(EVICTION), (2, 4))
    line = summary_line(compare_policies("t", accesses, question))
    assert line.startswith(("Best: ", "No policy gains"))
    assert "\n" not in line
