"""Defaults by GPU memory, against values resolved by SGLang 0.5.23 with a mocked memory size."""

import pytest

from twin.errors import InputError
from twin.scheduling.sglang.defaults import (
    decode_graph_sizes,
    max_running_requests,
    prefill_graph_sizes,
    sglang_defaults,
)

MIB = 2**20
# As nvidia-smi reports an A10, L40S, H100, H200 and B200.
FRACTIONS = [
    (23_028, 0.684, 0.635),
    (46_068, 0.843, 0.818),
    (81_559, 0.830, 0.812),
    (143_771, 0.903, 0.893),
    (183_359, 0.854, 0.849),
]


@pytest.mark.parametrize(("memory_mib", "one", "eight"), FRACTIONS)
def test_mem_fraction_static(memory_mib: int, one: float, eight: float) -> None:
    assert sglang_defaults(memory_mib * MIB).mem_fraction_static == one
    assert sglang_defaults(memory_mib * MIB, tp=8).mem_fraction_static == eight


@pytest.mark.parametrize(
    ("below_gib", "chunk", "graph", "graph_tp4"),
    [(20, 2048, 8, 8), (35, 4096, 48, 160), (60, 4096, 32, 160), (160, 8192, 256, 512)],
)
def test_sizes_change_at_their_limits(
    below_gib: int, chunk: int, graph: int, graph_tp4: int
) -> None:
    below = sglang_defaults(below_gib * 2**30 - MIB)
    assert (below.chunked_prefill_size, below.cuda_graph_max_bs_decode) == (chunk, graph)
    assert sglang_defaults(below_gib * 2**30 - MIB, tp=3).cuda_graph_max_bs_decode == graph
    assert sglang_defaults(below_gib * 2**30 - MIB, tp=4).cuda_graph_max_bs_decode == graph_tp4
    at = sglang_defaults(below_gib * 2**30)
    assert (at.chunked_prefill_size, at.cuda_graph_max_bs_decode) != (chunk, graph)


def test_the_largest_and_the_unknown() -> None:
    large, unknown = sglang_defaults(192 * 2**30), sglang_defaults(None)
    assert (large.chunked_prefill_size, large.cuda_graph_max_bs_decode) == (16384, 512)
    assert (unknown.chunked_prefill_size, unknown.cuda_graph_max_bs_decode) == (4096, 160)


def test_explicit_values_are_kept() -> None:
    given = sglang_defaults(80 * 2**30, chunked_prefill_size=-1, max_running_requests=100)
    assert (given.chunked_prefill_size, given.cuda_graph_max_bs_decode) == (-1, 100)
    assert sglang_defaults(80 * 2**30, max_running_requests=300).cuda_graph_max_bs_decode == 256
    # Whole prompts need activations for max_prefill_tokens, and no prefill graphs.
    reserved = 512 + 1.5 * 16384 + 128 + 2 * 256
    assert sglang_defaults(80 * 2**30, chunked_prefill_size=0).mem_fraction_static == round(
        1 - reserved / 81920, 3
    )


def test_max_running_requests() -> None:
    assert max_running_requests(500_000, 8192) == 4096
    assert max_running_requests(100_000, 32_768) == 2048
    assert max_running_requests(200_000, 32_768) == int(200_000 / 32_768 * 512)
    assert max_running_requests(3000, 8192) == 1500
    assert max_running_requests(500_000, 8192, given=64) == 64
    assert max_running_requests(100, 8192, given=64) == 50
    assert max_running_requests(500_000, 8192, given=64, attn_dp=8) == 8


def test_graph_sizes() -> None:
    assert decode_graph_sizes(48) == [1, 2, 4, 8, 12, 16, 24, 32, 40, 48]
    assert decode_graph_sizes(100)[-2:] == [96, 100]
    assert decode_graph_sizes(512)[-3:] == [480, 496, 512]
    assert decode_graph_sizes(600)[-4:] == [512, 544, 576, 600]
    assert sglang_defaults(80 * 2**30).decode_graph_sizes()[-1] == 256
    assert len(prefill_graph_sizes(4096)) == 50
    assert prefill_graph_sizes(8192)[-2:] == [7680, 8192]


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="tp is 0"):
        sglang_defaults(80 * 2**30, tp=0)
