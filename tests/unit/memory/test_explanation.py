"""`twin memory`: rows against counting, and what a layout changes in them."""

import numpy as np
import pytest

from twin.errors import InputError
from twin.llm.capacity import capacity
from twin.llm.kv_cache import block_bytes
from twin.load import load_scenario, scenario_from
from twin.load.resolve import capacity_query
from twin.memory.batch import fullest_batch, known_lengths
from twin.memory.explanation import BLOCK_SIZES, KV_DTYPES, explain

SPREAD = {"pools": "cross_layer", "order": "scattered"}


def scenario(**more):
    return scenario_from(
        {
            "schema_version": 1,
            "llm": "llama-3.1-70b",
            "gpu": "h200_sxm",
            "parallelism": {"tp": 8},
            "workload": {
                "kind": "closed_loop",
                "concurrency": 400,
                "num_requests": 400,
                "prompt_tokens": {"kind": "uniform", "low": 100, "high": 9000},
                "output_tokens": 300,
            },
            **more,
        }
    )


@pytest.fixture(scope="module")
def usual():
    return explain(load_scenario("chat-h100"))


@pytest.fixture(scope="module")
def spread():
    return explain(scenario(kv_layout=SPREAD))


def row_of(found, block_tokens, kv_dtype):
    return next(
        row for row in found.rows if (row.block_tokens, row.kv_dtype) == (block_tokens, kv_dtype)
    )


def test_there_is_a_row_for_every_block_size_and_dtype(usual):
    assert [(r.block_tokens, r.kv_dtype) for r in usual.rows] == [
        (size, dtype) for size in BLOCK_SIZES for dtype in KV_DTYPES
    ]


def test_sizes_are_the_capacity_models(usual):
    plain = load_scenario("chat-h100")
    for size in (16, 64):
        for dtype in ("bf16", "fp8"):
            row = row_of(usual, size, dtype)
            assert row.block_bytes == block_bytes(plain.arch, size, dtype)
    own = row_of(usual, 16, "bf16")
    blocks = capacity(capacity_query(plain.file, plain.arch, plain.gpu, plain.policy)).kv_blocks
    assert own.capacity_tokens == 16 * blocks == 16 * plain.num_gpu_blocks


def test_eight_bits_hold_twice_and_five_bits_3_2_times_the_tokens(usual):
    tokens = {dtype: row_of(usual, 16, dtype).capacity_tokens for dtype in KV_DTYPES}
    assert tokens["fp8"] == tokens["int8"] == 2 * tokens["bf16"]
    assert tokens["int4"] == pytest.approx(16 / 5 * tokens["bf16"], rel=1e-4)


def test_shares_are_shares_and_tails_grow_with_blocks(usual):
    for share in usual.shares:
        assert sum(share.values()) == pytest.approx(1)
        assert min(share.values()) >= 0
    tails = [row_of(usual, size, "bf16").tail_waste for size in BLOCK_SIZES]
    assert tails == sorted(tails)
    lengths = usual.batch.lengths
    held = (-(-lengths // 64) * 64).sum()
    assert row_of(usual, 64, "bf16").tail_waste == pytest.approx(1 - lengths.sum() / held)


def test_only_scales_apart_waste_sectors(usual):
    for row, share in zip(usual.rows, usual.shares, strict=True):
        assert (row.sector_efficiency < 1) == (row.kv_dtype == "int4")
        assert (share["scales"] > 0) == (share["sector_waste"] > 0) == (row.kv_dtype == "int4")


def test_a_tensor_a_layer_adds_nothing_even_at_the_dearest(usual):
    assert all(row.added_s == row.added_most_s == 0 for row in usual.rows)


def test_a_pool_across_layers_adds_between_its_bounds(spread):
    row = row_of(spread, 16, "bf16")
    assert row.walks > 0
    assert row.added_least_s == 0 < row.added_s < row.added_most_s
    times = [row_of(spread, size, "bf16").added_s for size in BLOCK_SIZES]
    assert times == sorted(times, reverse=True)
    assert times[-1] == 0


def test_paging_costs_a_little_at_least(usual):
    for row in usual.rows:
        assert 1 < row.kappa_least < 1.01 < row.kappa_most == 1.3


def test_the_batch_fits_every_pool():
    found = scenario()
    lengths = known_lengths(found)
    assert lengths.size == 400
    batch = fullest_batch(found, [(16, 1000), (256, 40)])
    assert batch.blocks(16) <= 1000
    assert batch.blocks(256) <= 40
    longer = lengths[: batch.seqs + 1]
    assert (-(-longer // 16)).sum() > 1000 or (-(-longer // 256)).sum() > 40
    np.testing.assert_array_equal(batch.lengths, lengths[: batch.seqs])


def test_no_more_sequences_than_the_policy_lets_run():
    assert explain(scenario(policy={"max_num_seqs": 7})).batch.seqs == 7


def test_a_pool_too_small_for_one_request_is_refused():
    with pytest.raises(InputError, match="does not fit the smallest pool"):
        fullest_batch(scenario(), [(16, 1)])


@pytest.mark.parametrize("llm", ["deepseek-v3", "gpt-oss-20b", "qwen3-8b"])
def test_other_kinds_of_attention(llm):
    spread = {"tp": 8} if llm == "deepseek-v3" else {"tp": 1}
    found = explain(
        scenario(llm=llm, parallelism=spread, policy={"max_model_len": 16384}, kv_layout=SPREAD)
    )
    assert found.rows
    if llm == "gpt-oss-20b":
        assert any("sliding-window" in note for note in found.notes)


def test_small_pools_leave_large_blocks_out():
    found = explain(
        scenario(
            policy={"num_gpu_blocks": 100, "max_model_len": 1024},
            workload={
                "kind": "closed_loop",
                "concurrency": 2,
                "num_requests": 2,
                "prompt_tokens": 90,
                "output_tokens": 10,
            },
        )
    )
    assert found.batch.seqs == 2
    data = found.as_dict()
    assert data["layout"]["pool_bytes"] == found.layout.pool_bytes
    assert len(data["rows"]) == len(data["shares"]) == len(found.rows)
    assert data["constants"]["walkers"]["measured"] is False
