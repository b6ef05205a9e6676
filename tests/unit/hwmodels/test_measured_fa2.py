import pytest

from hwmodels.gpus import GPUS
from hwmodels.measured.fa2_decode import Fa2DecodeFit, fa2_decode_s, num_splits
from hwmodels.ops import DecodeAttention

A100 = GPUS["a100_sxm"]
FIT = Fa2DecodeFit(8e-6, 0.74, 4e-6, 7e-6, 1.7, 0.01, 23e9, 7e-6, 4e12)


def op(seqs: int, length: int, heads: int, kv_heads: int) -> DecodeAttention:
    return DecodeAttention(seqs, seqs * length, length, heads, kv_heads, 128, 128, 512.0 * kv_heads)


def test_full_grids_are_not_split() -> None:
    assert num_splits(173, 216, 64) == 1
    assert num_splits(172, 216, 64) > 1


def test_the_fewest_good_splits_are_taken() -> None:
    # 128 blocks on 216 slots: 3 splits fill 1.78 of 2 waves (89 %), 5 fill 2.96 of 3 (99 %).
    assert num_splits(128, 216, 16) == 3
    assert num_splits(1, 216, 1) == 1


def test_ungrouped_heads_are_never_split() -> None:
    # 8 heads of 131,072 tokens each: one block streams 64 MiB at 23 GB/s.
    alone = fa2_decode_s(op(1, 131072, 8, 8), FIT, A100)
    assert alone == pytest.approx(131072 * 512 / 23e9, rel=0.02)
    assert fa2_decode_s(op(1, 131072, 32, 8), FIT, A100) < alone / 3


def test_several_kv_heads_and_sequences_are_copied_back() -> None:
    one, two = (fa2_decode_s(op(seqs, 16, 32, 8), FIT, A100) for seqs in (1, 2))
    assert two - one == pytest.approx(7e-6, abs=1e-6)
    assert fa2_decode_s(op(2, 16, 8, 1), FIT, A100) < one + 1e-6


def test_kv_left_in_the_l2_is_faster() -> None:
    small = op(8, 2048, 64, 2)
    assert fa2_decode_s(small, FIT, A100, l2_warm=True) < fa2_decode_s(small, FIT, A100)
