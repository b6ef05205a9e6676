"""Fits of memory, launches and paging find what was planted."""

import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from measuring_fakes import H200

from calibrate.measuring.memory_fit import memory_parameters, stream_bytes_per_s
from calibrate.measuring.other_fits import (
    launch_parameters,
    paged_share_of_copy,
    paging_parameters,
    stream_share,
)
from calibrate.measuring.steps import plateaus

CLOCK_HZ = 1.98e9
MIB, GIB = 2**20, 2**30


def table(axes: str, rows: list[tuple[float, ...]]) -> dict[str, Any]:
    names = [*axes.split(), "seconds"]
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    return {n: c if n == "seconds" else c.astype(np.int64) for n, c in columns.items()}


def noisy(seconds: float, random: np.random.Generator, spread: float = 0.01) -> float:
    return seconds * float(np.exp(random.normal(0, spread)))


@settings(max_examples=60, deadline=None)
@given(
    levels=st.lists(st.floats(1.15, 3.0), min_size=0, max_size=3),
    sizes=st.lists(st.integers(3, 9), min_size=4, max_size=4),
    seed=st.integers(0, 1000),
)
def test_planted_steps_are_found(levels, sizes, seed):
    random = np.random.default_rng(seed)
    truth = np.cumprod([100.0, *levels])
    steps = [level for level, size in zip(truth, sizes, strict=False) for _ in range(size)]
    x = [2.0**i for i in range(len(steps))]
    found = plateaus(x, [noisy(y, random, 0.004) for y in steps])
    assert [p.level for p in found] == pytest.approx(list(truth[: len(found)]), rel=0.02)
    assert len(found) == len(truth)
    ends = np.cumsum(sizes[: len(truth)]) - 1
    assert [p.last for p in found] == [x[end] for end in ends]


def test_a_flat_curve_is_one_plateau_and_no_curve_is_none():
    assert len(plateaus([1, 2, 4, 8], [5.0, 5.05, 4.97, 5.0])) == 1
    assert plateaus([], []) == []
    assert plateaus([3.0], [7.0])[0].level == pytest.approx(7.0)


def chase(seed: int = 0) -> dict[str, Any]:
    """Hopper's plateaus by lines; TLB steps at 32 MiB, 8 GiB and 64 GiB by pages."""
    random = np.random.default_rng(seed)
    rows = []
    for exponent in np.arange(15, 33, 0.5):
        size = int(2**exponent)
        cycles = 280 if size <= 25 * MIB else 505 if size <= 50 * MIB else 690
        rows.append((size, 128, 1, noisy(cycles / CLOCK_HZ, random, 0.003)))
    for exponent in np.arange(23, 37.5, 0.5):
        size = int(2**exponent)
        cycles = 280 + 20 * (size > 32 * MIB) + 90 * (size > 8 * GIB) + 450 * (size > 64 * GIB)
        rows.append((size, 2 * MIB, 1, noisy(cycles / CLOCK_HZ, random, 0.003)))
    return table("footprint_bytes stride_bytes random", rows)


@pytest.mark.parametrize("seed", range(5))
def test_latencies_and_the_tlb_come_from_the_chase(seed):
    found = memory_parameters({"chase": chase(seed)}, H200, CLOCK_HZ)
    assert found["l2_near_cycles"] == pytest.approx(280, rel=0.01)
    assert found["l2_far_cycles"] == pytest.approx(505, rel=0.02)
    assert found["dram_cycles"] == pytest.approx(690, rel=0.01)
    assert found["tlb_l1_entries"] == 16
    assert found["tlb_l1_miss_cycles"] == pytest.approx(20, abs=4)
    assert found["tlb_l2_reach_bytes"] == 8 * GIB
    assert found["tlb_l2_miss_cycles"] == pytest.approx(90, abs=6)
    assert found["tlb_l3_reach_bytes"] == 64 * GIB
    assert found["walk_cycles"] == pytest.approx(450, abs=12)


def test_walkers_are_what_limits_small_blocks_beyond_the_reach():
    walk_s, walkers = 450 / CLOCK_HZ, 40
    rows = []
    for block, size in product((2**12, 2**13, 2**14), (GIB, 100 * GIB)):
        by_memory = block / 4e12
        rows.append((block, size, max(by_memory, walk_s / walkers) if size > GIB else by_memory))
    tables = {"chase": chase(), "gather": table("block_bytes footprint_bytes", rows)}
    found = memory_parameters(tables, H200, CLOCK_HZ)
    assert found["walkers"] == pytest.approx(40, abs=2)
    # Where bytes limit, walks don't show.
    rows = [(b, s, b / 4e12) for b, s in product((2**12, 2**13, 2**14), (GIB, 100 * GIB))]
    tables["gather"] = table("block_bytes footprint_bytes", rows)
    assert "walkers" not in memory_parameters(tables, H200, CLOCK_HZ)


def stream(l2: float, memory: float, copy: float) -> dict[str, Any]:
    rows = []
    for exponent in np.arange(20, 34, 0.5):
        size = int(2**exponent)
        rate = l2 if size <= 40e6 else memory
        rows.append((size, 0, 2e-6 + size / rate))
        rows.append((size, 2, 2e-6 + 2 * size / copy))
    return table("bytes mode", rows)


def test_bandwidths_come_from_the_stream_despite_the_launch():
    tables = {"stream": stream(9.8e12, 4.0e12, 3.8e12)}
    found = memory_parameters(tables, H200, CLOCK_HZ)
    assert found["l2_bytes_per_s"] == pytest.approx(9.8e12, rel=0.02)
    assert found["stream_bytes_per_s"] == pytest.approx(4.0e12, rel=0.02)
    assert stream_share(tables, H200) == pytest.approx(4.0e12 / 4.8e12, rel=0.02)
    assert stream_bytes_per_s(tables, H200, mode=2) == pytest.approx(3.8e12, rel=0.02)


def test_alignment_by_class_and_by_offset():
    speeds = {16: 1.0, 8: 0.95, 4: 0.6, 2: 0.35}
    lda = []
    for lead in range(1024, 1033):
        aligned = next(size for size in speeds if (2 * lead) % size == 0)
        lda += [(lead, m, 512, 1024, 1, m * 1e-8 / speeds[aligned]) for m in (256, 4096)]
        lda.append((lead, 4096, 512, 1024, 0, 5e-5))
    copies = [(o, b, 1e-5 * (1.08 if o % 128 else 1.0)) for o in (0, 4, 64, 128) for b in (64, 99)]
    tables = {
        "lda": table("lda m n k library", lda),
        "offset_copy": table("offset_bytes bytes", copies),
    }
    found = memory_parameters(tables, H200, CLOCK_HZ)
    assert found["alignment_speed"] == pytest.approx({"16": 1, "8": 0.95, "4": 0.6, "2": 0.35})
    assert found["offset_copy_slowdown"] == pytest.approx(1.08)


def test_nothing_measured_gives_no_parameters():
    assert memory_parameters({}, H200, CLOCK_HZ) == {}
    assert (launch_parameters({}), paging_parameters({})) == ({}, {})
    assert stream_share({}, H200) is None
    assert paged_share_of_copy({}, H200) is None


def test_launch_gaps_are_those_of_many_launches():
    gaps = {(0, 65536): 2.5e-6, (1, 65536): 1.4e-6, (2, 65536): 9e-6, (2, 0): 7e-6, (1, 0): 1e-6}
    rows = [(n, g, b, gap + 9e-6 / n) for n in (1, 10, 2000) for (g, b), gap in gaps.items()]
    found = launch_parameters({"launch_gap": table("launches graph bytes", rows)})
    wanted = {"stream_gap_s": 2.5e-6, "graph_gap_s": 1.4e-6, "eager_op_s": 7e-6}
    assert found == pytest.approx(wanted, rel=0.01)


def test_paging_is_against_the_fastest_ordered_block_size():
    kappa = {(16, 0): 1.2, (16, 1): 1.3, (64, 0): 1.0, (64, 1): 1.05, (256, 0): 1.01}
    rows = [(b, s, q, 1024, q * 1e-6 * k) for (b, s), k in kappa.items() for q in (8, 64)]
    attention = "heads kv_heads batch length"
    tables = {
        "decode_order": table("block_tokens shuffled seqs context_tokens", rows),
        "decode.128.bf16": table(attention, [(32, 8, 8, 4096, 1.1e-5), (32, 8, 1, 1, 1e-6)]),
        "contiguous_decode.128.bf16": table(attention, [(32, 8, 8, 4096, 1e-5)]),
    }
    assert paging_parameters(tables) == {
        "ordered": {"16": 1.2, "64": 1.0, "256": 1.01},
        "shuffled": {"16": 1.3, "64": 1.05},
        "contiguous": pytest.approx(1.1),
    }


def test_decode_is_held_against_the_copy_over_large_kv_only():
    kv = 4 * 128 * 8
    lengths = {1024: 0.2, 65536: 0.9}  # 4 MB, and 268 MB
    rows = [(32, 8, 1, n, kv * n / (share * 3.8e12)) for n, share in lengths.items()]
    tables = {
        "stream": stream(9.8e12, 4.0e12, 3.8e12),
        "decode.128.bf16": table("heads kv_heads batch length", rows),
    }
    share, count = paged_share_of_copy(tables, H200) or (0, 0)
    assert (share, count) == (pytest.approx(0.9, rel=0.01), 1)
