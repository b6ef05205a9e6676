import pytest

from hwmodels.measured.heads import HeadShare, stand_ins

H100_DECODE = {(h, k) for h in (8, 16, 24, 32, 40, 48, 64) for k in (1, 2, 4, 8)} | {
    (1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (4, 4), (12, 1), (12, 2), (12, 4),
}  # fmt: skip


def test_a_measured_pair_stands_for_itself() -> None:
    assert stand_ins((32, 8), H100_DECODE) == ([HeadShare((32, 8), 1.0, 1.0)], True)


def test_28_heads_lie_between_24_and_32() -> None:
    shares, enclosed = stand_ins((28, 4), H100_DECODE)
    assert enclosed
    assert [share.pair for share in shares] == [(24, 4), (32, 4)]
    assert sum(share.weight for share in shares) == pytest.approx(1)
    assert shares[0].weight == pytest.approx(0.464, abs=0.001)


def test_many_kv_heads_are_few_on_a_larger_batch() -> None:
    assert stand_ins((32, 32), H100_DECODE)[0] == [HeadShare((8, 8), 4.0, 1.0)]
    assert stand_ins((40, 40), H100_DECODE)[0] == [HeadShare((8, 8), 5.0, 1.0)]


def test_equal_groups_enclose_before_batches_are_scaled() -> None:
    shares, enclosed = stand_ins((16, 16), {(8, 8), (24, 24), (32, 8)})
    assert enclosed
    assert [(s.pair, s.batch_factor) for s in shares] == [((8, 8), 1.0), ((24, 24), 1.0)]


def test_a_close_group_of_as_many_kv_heads_is_taken_but_doubted() -> None:
    shares, enclosed = stand_ins((80, 8), H100_DECODE)
    assert (shares[0].pair, enclosed) == ((64, 8), False)


def test_something_always_stands_in() -> None:
    shares, enclosed = stand_ins((7, 3), {(64, 1)})
    assert [share.pair for share in shares] == [(64, 1)]
    assert shares[0].batch_factor == 3.0
    assert not enclosed
