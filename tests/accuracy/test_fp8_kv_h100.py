"""FP8 KV on one H100: Llama-3.1-8B, one sequence, ITL over context as vLLM's authors published it.

ITL = 4.37e-5 ms × L + 6.44 with 16-bit KV, 2.37e-5 ms × L + 6.58 with FP8: from about 7,010 tokens
on FP8 is the faster (24,889 before its kernels were improved). Nothing was fitted to these.
"""

import numpy as np
import pytest

from hwmodels.efficiency import FP8_KV_RATIO
from hwmodels.profile import find_shipped, open_profile
from twin.llm.kv_break_even import kv_break_even
from twin.load import scenario_from
from twin.memory.kv_steps import FP8_KV_SPREAD, kv_steps

CONTEXTS = (1024, 4096, 16384, 65536, 131072)
LINES_MS = {"auto": (6.44, 4.37e-5), "fp8": (6.58, 2.37e-5)}
NEW_BREAK_EVEN, OLD_BREAK_EVEN = 7010, 24889


def steps(dtype):
    return kv_steps(
        scenario_from(
            {
                "schema_version": 1,
                "llm": "llama-3.1-8b",
                "gpu": "h100_sxm",
                "policy": {"kv_cache_dtype": dtype},
                "workload": {
                    "kind": "closed_loop",
                    "concurrency": 1,
                    "num_requests": 1,
                    "prompt_tokens": 1024,
                    "output_tokens": 16,
                },
            }
        )
    )


@pytest.fixture(scope="module")
def both():
    return {dtype: steps(dtype) for dtype in LINES_MS}


@pytest.mark.parametrize("dtype", LINES_MS)
@pytest.mark.parametrize("context", CONTEXTS)
def test_itl_within_seven_per_cent(both, dtype, context):
    base, slope = LINES_MS[dtype]
    forecast_ms = 1e3 * both[dtype].side.decode_s(1, context)
    assert forecast_ms == pytest.approx(base + slope * context, rel=0.07)


def test_break_even_lies_between_the_published_ones(both):
    found = kv_break_even(both["auto"].side, both["fp8"].side, (1,), 131072)[1]
    assert NEW_BREAK_EVEN < found.first < 1.5 * NEW_BREAK_EVEN
    assert found.first < OLD_BREAK_EVEN
    assert found.last == 131072


def test_stand_in_for_unmeasured_parts_is_the_median_of_kernels():
    """`FP8_KV_RATIO` against the H100 table it is the median of, by bytes of bf16 KV."""
    tables = open_profile(find_shipped("h100_sxm", "vllm")).tables
    seconds = [by_shape(tables[f"decode.128.{dtype}"]) for dtype in ("bf16", "fp8")]
    ratios = {size: [] for size, _ in FP8_KV_RATIO}
    for shape in sorted(seconds[0].keys() & seconds[1].keys()):
        _, kv_heads, batch, length = shape
        size = 4.0 * kv_heads * 128 * batch * length
        edge = sum(size >= edge for edge in (1e6, 20e6, 100e6, 400e6))
        ratios[FP8_KV_RATIO[edge][0]].append(seconds[1][shape] / seconds[0][shape])
    for size, expected in FP8_KV_RATIO:
        assert len(ratios[size]) > 500
        assert np.median(ratios[size]) == pytest.approx(expected, abs=0.005)
    spreads = [(np.quantile(r, 0.9) - np.quantile(r, 0.1)) / 2 for r in ratios.values()]
    assert spreads == pytest.approx([spread for _, spread in FP8_KV_SPREAD], abs=0.005)


def by_shape(table):
    columns = (table[name].tolist() for name in ("heads", "kv_heads", "batch", "length"))
    return dict(zip(zip(*columns, strict=True), table["seconds"].tolist(), strict=True))
