"""Collectives between two processes over gloo, and what the checks would catch."""

import pytest
import torch

from kernels.errors import KernelInputError
from kernels.probes import collectives
from kernels.probes.collectives import COLLECTIVES, measure_collectives


def test_two_ranks_receive_what_they_should():
    rows = measure_collectives(2, [8, 4096], repetitions=2)
    assert [(row.collective, row.bytes) for row in rows] == [
        (name, size) for name in COLLECTIVES for size in (8, 4096)
    ]
    for row in rows:
        if row.seconds_median is None:
            # Some builds of gloo cannot do it; then they say so.
            assert row.collective == "reduce_scatter"
            assert "has no reduce_scatter" in row.problem
            continue
        assert row.problem == ""
        assert 0 < row.seconds_median <= row.seconds_p90


@pytest.mark.parametrize(
    ("ranks", "sizes", "names", "told"),
    [
        (1, [8], ["all_reduce"], "at least 2"),
        (2, [12], ["all_reduce"], "multiple of 8"),
        (2, [0], ["all_reduce"], "multiple of 8"),
        (2, [8], ["all_redcue"], "unknown collective all_redcue"),
    ],
)
def test_impossible_questions_are_refused_before_anything_starts(ranks, sizes, names, told):
    with pytest.raises(KernelInputError, match=told):
        measure_collectives(ranks, sizes, collectives=names)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_no_collective_can_pass_by_doing_nothing(rank):
    buffers = collectives._Buffers(rank, 3, torch.empty(300), torch.empty(100))
    for name in COLLECTIVES:
        collectives._fill(buffers)
        received, wanted = collectives._expected(name, buffers)
        assert received.shape == wanted.shape
        # Of send/recv only rank 1 receives.
        assert torch.equal(received, wanted) == (name == "send_recv" and rank != 1)
