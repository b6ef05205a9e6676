"""What the attention launchers refuse, how they split contexts, and that graphs can hold them."""

from functools import partial

import pytest
import torch

from kernels.attention.paged_decode import paged_decode
from kernels.attention.paged_prefill import paged_prefill
from kernels.attention.splitting import (
    MAX_SPLITS,
    DecodeConfig,
    choose_splits,
    decode_config,
    workspace_elements,
)
from kernels.catalogue import KERNELS
from kernels.errors import KernelInputError

ATTENTION = ("paged_decode", "contiguous_decode", "paged_prefill", "quantised_decode", "write_kv")
H200_SLOTS = 132 * 3


def inputs(device, *, dim=64, block=16, heads=4, kv_heads=2, seqs=2):
    return {
        "query": torch.randn(seqs, heads, dim, device=device),
        "key_cache": torch.randn(5, block, kv_heads, dim, device=device),
        "value_cache": torch.randn(5, block, kv_heads, dim, device=device),
        "block_tables": torch.ones(seqs, 2, dtype=torch.int32, device=device),
        "context_lens": torch.full((seqs,), 3, dtype=torch.int32, device=device),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dim": 80}, "dim is 80; 64, 128 or 256 is needed"),
        ({"block": 24}, "blocks have 24 tokens; one of 8, 16, 32, 64, 128, 256"),
        ({"heads": 3}, "query has 3 heads for 2 KV heads; 1 to 64 to each are needed"),
    ],
)
def test_sizes_that_no_kernel_has_are_refused(change, message, device):
    with pytest.raises(KernelInputError, match=message):
        paged_decode(**inputs(device, **change))


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("context_lens", lambda x: x.long(), "context_lens is int64; int32 is needed"),
        ("block_tables", lambda x: x[:1], r"block_tables has shape \[1, 2\]; \[2, max_blocks\]"),
        ("key_cache", lambda x: x.half(), "key_cache is float16; float32 is needed"),
        ("value_cache", lambda x: x[:4], r"value_cache has shape \[4, 16, 2, 64\]"),
        ("value_cache", lambda x: x.transpose(1, 2).contiguous().transpose(1, 2), "strides"),
        ("query", lambda x: x.double(), "float64"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(name, change, message, device):
    given = inputs(device)
    given[name] = change(given[name])
    with pytest.raises(KernelInputError, match=message):
        paged_decode(**given)


def test_a_workspace_one_element_short_is_refused(device):
    given = inputs(device)
    needed = workspace_elements(2, 4, 64, 3)
    paged_decode(**given, num_splits=3, workspace=torch.empty(needed, device=device))
    with pytest.raises(KernelInputError, match=f"3 splits need {needed}"):
        paged_decode(**given, num_splits=3, workspace=torch.empty(needed - 1, device=device))


@pytest.mark.parametrize("splits", [-1, MAX_SPLITS + 1])
def test_numbers_of_splits_out_of_range_are_refused(splits, device):
    with pytest.raises(KernelInputError, match=f"num_splits is {splits}; 1 to 256 is needed"):
        paged_decode(**inputs(device), num_splits=splits)


def test_query_starts_of_another_length_are_refused(device):
    starts = torch.arange(2, dtype=torch.int32, device=device)
    with pytest.raises(KernelInputError, match=r"query_starts has shape \[2\]; \[3\] is needed"):
        paged_prefill(**inputs(device), query_starts=starts)


class TestSplits:
    def test_one_long_sequence_fills_the_chip_in_one_wave(self):
        splits = choose_splits(8, 32_768, 64, H200_SLOTS)
        assert H200_SLOTS * 0.85 <= 8 * splits <= H200_SLOTS

    def test_many_sequences_are_not_cut(self):
        assert choose_splits(4096 * 8, 4096, 64, H200_SLOTS) == 1

    def test_a_batch_just_over_a_wave_is_cut_rather_than_run_in_two(self):
        programs = H200_SLOTS + 1
        splits = choose_splits(programs, 32_768, 64, H200_SLOTS)
        waves = -(-programs * splits // H200_SLOTS)
        assert splits > 1
        assert waves * -(-512 // splits) < 2 * 512 * 0.8

    def test_no_part_is_less_than_a_tile(self):
        assert choose_splits(1, 1, 64, H200_SLOTS) == 1
        assert choose_splits(1, 65, 64, H200_SLOTS) <= 2

    def test_never_more_than_the_merge_takes(self):
        assert choose_splits(1, 10**7, 64, 10_000) <= MAX_SPLITS

    def test_the_interpreter_cuts_nothing(self):
        assert choose_splits(1, 4096, 64, 1) == 1


@pytest.mark.parametrize("row_bytes", [64, 128, 256, 512, 1024])
def test_a_tile_is_a_power_of_two_and_two_programs_fit_a_multiprocessor(row_bytes):
    config = decode_config(row_bytes)
    assert config.tile_tokens & (config.tile_tokens - 1) == 0
    assert config.resident(row_bytes, 164 * 1024) >= 1
    assert config.resident(row_bytes, 228 * 1024) >= 2
    assert DecodeConfig(64).resident(256, 0) == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", ATTENTION)
def test_a_launch_can_be_captured_in_a_graph(name, device):
    kernel = KERNELS[name]
    case = kernel.make_case(kernel.shapes[0], kernel.dtypes[-1], device, 7)
    launch = partial(case.launch)
    launch()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    assert torch.cuda.memory_allocated() == before
    graph.replay()


@pytest.mark.parametrize("launch", [paged_decode, paged_prefill])
def test_blocks_whose_tokens_lie_too_far_apart_are_refused(launch):
    given = inputs(torch.device("meta"))  # which takes no memory
    far = torch.empty_strided((5, 16, 2, 64), (128, 2**28, 64, 1), device="meta")
    given.update(key_cache=far, value_cache=far)
    if launch is paged_prefill:
        given["query_starts"] = torch.zeros(3, dtype=torch.int32, device="meta")
    with pytest.raises(KernelInputError, match="a block's tokens lie 4026531840 elements apart"):
        launch(**given)


def test_no_splits_at_all_are_refused(device):
    with pytest.raises(KernelInputError, match="num_splits is 0; 1 to 256 is needed"):
        paged_decode(**inputs(device), num_splits=0)
