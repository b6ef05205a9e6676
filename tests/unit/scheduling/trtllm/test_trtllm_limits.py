"""Limits and defaults of TensorRT-LLM, and what its server refuses."""

from collections.abc import Callable
from typing import Any

import pytest

from twin.errors import InputError
from twin.request import Request
from twin.scheduling import SCHEDULERS
from twin.scheduling.trtllm import TrtllmScheduler, trtllm_defaults

Make = Callable[..., Any]


def request(prompt: int, max_tokens: int, stop: int | None = None) -> Request:
    return Request(0, 0.0, prompt_tokens=prompt, max_tokens=max_tokens, stop_after_tokens=stop)


def test_defaults_are_those_of_trtllm_serve() -> None:
    limits = trtllm_defaults(4096, 1000)
    assert (limits.max_batch_size, limits.max_num_tokens, limits.tokens_per_block) == (
        2048,
        8192,
        32,
    )
    assert limits.capacity_scheduler_policy == "GUARANTEED_NO_EVICT"
    assert limits.context_chunking_policy == "FIRST_COME_FIRST_SERVED"
    assert not limits.enable_chunked_prefill
    assert limits.overlap
    assert limits.enable_block_reuse
    assert limits.enable_partial_reuse
    assert limits.batch_wait_timeout_iters == limits.batch_wait_max_tokens_ratio == 0
    assert trtllm_defaults(4096, 1000, max_batch_size=7).max_batch_size == 7


@pytest.mark.parametrize(("sm", "chunked"), [(90, True), (100, True), (89, False), (80, False)])
def test_mla_is_chunked_on_some_gpus_only(sm: int, chunked: bool) -> None:
    limits = trtllm_defaults(4096, 1000, mla=True, sm=sm, enable_chunked_prefill=True)
    assert limits.enable_chunked_prefill is chunked
    plain = trtllm_defaults(4096, 1000, sm=sm, enable_chunked_prefill=True)
    assert plain.enable_chunked_prefill


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"max_batch_size": 0}, "max_batch_size is 0; give at least 1"),
        ({"num_blocks": 0}, "num_blocks is 0"),
        ({"batch_wait_timeout_iters": -1}, "batch_wait_timeout_iters is -1"),
        ({"batch_wait_max_tokens_ratio": 1.5}, "a share of max_num_tokens"),
        ({"batch_wait_max_tokens_ratio": float("nan")}, "give 0 or more"),
        ({"capacity_scheduler_policy": "MAX_UTILISATION"}, "unknown capacity scheduler policy"),
        ({"context_chunking_policy": "FORCE_CHUNK"}, "unknown context chunking policy"),
        ({"stratum": "late"}, "unknown stratum"),
        ({"stratum": "early", "waiting_queue": "priority"}, "does not exist in stratum 'early'"),
        ({"num_blocks": 1, "cuda_graph_dummy_block": True}, "dummy request holds one"),
        ({"enable_chunked_prefill": True, "max_num_tokens": 9}, "below the chunk unit of 10"),
    ],
)
def test_what_no_engine_starts_with(limits: Make, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        limits(**changes)


def test_chunk_unit_is_a_block_or_256_with_a_window(limits: Make) -> None:
    assert limits().chunk_unit_tokens == 10
    assert limits(shortest_window_tokens=399).chunk_unit_tokens == 256
    assert limits(shortest_window_tokens=400).chunk_unit_tokens == 10
    assert limits(shortest_window_tokens=64, tokens_per_block=512).chunk_unit_tokens == 512


def test_a_prompt_must_leave_room_and_fit_a_step(limits: Make) -> None:
    assert limits(max_num_tokens=500).fits(request(399, 9))
    assert not limits(max_num_tokens=500).fits(request(400, 9))
    assert limits().fits(request(100, 9))
    assert not limits().fits(request(101, 9))
    assert limits(enable_chunked_prefill=True).fits(request(101, 9))


def test_no_evict_wants_blocks_for_the_foreseen_answer(limits: Make) -> None:
    few = limits(num_blocks=5)
    assert few.fits(request(20, 30))
    assert not few.fits(request(20, 31))
    assert not few.fits(request(20, 31, stop=1))
    assert few.foreseen_output(request(20, 31, stop=1)) == 31
    assert few.output_limit(request(20, 31, stop=1)) == 1
    # The graph padding's dummy request holds one block for good.
    assert not limits(num_blocks=5, cuda_graph_dummy_block=True).fits(request(20, 30))
    assert limits(num_blocks=6, cuda_graph_dummy_block=True).fits(request(20, 30))


def test_max_utilization_wants_blocks_for_what_is_generated(limits: Make) -> None:
    few = limits(num_blocks=5, capacity_scheduler_policy="MAX_UTILIZATION")
    assert few.fits(request(20, 99, stop=30))
    assert not few.fits(request(20, 99, stop=31))


def test_the_context_cuts_the_foreseen_answer(limits: Make) -> None:
    assert limits().foreseen_output(request(90, 310)) == 310
    assert limits().foreseen_output(request(90, 311)) == 310
    assert limits().foreseen_output(request(400, 311)) == 1


def test_scheduler_is_in_the_table() -> None:
    assert SCHEDULERS["trtllm"] is TrtllmScheduler


@pytest.mark.parametrize(("overlap", "depth"), [(True, 2), (False, 1)])
def test_overlap_means_two_steps_in_flight(limits: Make, overlap: bool, depth: int) -> None:
    scheduler = TrtllmScheduler(limits(overlap=overlap))
    assert scheduler.queue_depth == depth
    assert not scheduler.launches_empty
