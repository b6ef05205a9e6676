"""The norms: sizes, residual in place, wide rows, half-precision sums and where they overflow."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import reference
from kernels.dtypes import tolerance
from kernels.errors import KernelInputError
from kernels.judging import relative_error
from kernels.norm.layer_norm import layer_norm
from kernels.norm.rms_norm import rms_norm
from kernels.norm.rows import LOOP_BLOCK, WHOLE_COLUMNS
from tests.kernels.seeding import seeded

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
EPS = 1e-5
EDGES = (LOOP_BLOCK - 1, WHOLE_COLUMNS, WHOLE_COLUMNS + 1, 3 * LOOP_BLOCK, 16384, 28672)


def normal(*sizes, seed=5):
    random = torch.Generator(DEVICE).manual_seed(seed)
    return torch.randn(*sizes, generator=random, device=DEVICE)


def run(norm, x, **options):
    """Return what a norm makes of x, and the oracle of x with the residual in it."""
    weight, bias = normal(x.shape[1], seed=1).to(x.dtype), normal(x.shape[1], seed=2).to(x.dtype)
    if norm.__name__ == "rms_norm":
        out = norm(x, weight, eps=EPS, **options)
        return out, lambda total: reference.rms_norm(total, weight, EPS)
    out = norm(x, weight, bias, eps=EPS, **options)
    return out, lambda total: reference.layer_norm(total, weight, bias, EPS)


@pytest.mark.parametrize("norm", [rms_norm, layer_norm])
class TestBoth:
    @settings(max_examples=15, deadline=None)
    @given(
        rows=st.integers(1, 3),
        columns=st.one_of(st.integers(2, 300), st.sampled_from(EDGES)),
        dtype=st.sampled_from([torch.float16, torch.float32]),
        residual=st.booleans(),
    )
    def test_any_row_equals_the_oracle(self, norm, rows, columns, dtype, residual):
        x = normal(rows, columns).to(dtype)
        added = normal(rows, columns, seed=6).to(dtype) if residual else None
        total = x if added is None else x + added
        out, oracle = run(norm, x, residual=added)
        assert relative_error(out, oracle(total)) <= tolerance(str(dtype).removeprefix("torch."))
        if added is not None:
            assert torch.equal(added, total)

    @pytest.mark.parametrize("columns", [257, WHOLE_COLUMNS + 5])
    def test_the_residual_is_left_where_the_sum_goes_elsewhere(self, norm, columns):
        x, added = normal(2, columns), normal(2, columns, seed=6)
        before, summed = added.clone(), torch.full_like(x, float("nan"))
        out, oracle = run(norm, x, residual=added, summed=summed)
        assert torch.equal(added, before)
        assert torch.equal(summed, x + before)
        assert relative_error(out, oracle(summed)) <= tolerance("float32")

    def test_no_rows(self, norm):
        out, _ = run(norm, torch.ones(0, 8, device=DEVICE))
        assert out.shape == (0, 8)

    def test_a_row_of_zeros_is_finite(self, norm):
        out, _ = run(norm, torch.zeros(1, 64, device=DEVICE))
        assert out.isfinite().all()

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"accumulate": "bfloat16"}, "accumulate is 'bfloat16'; known are float32, float16"),
            ({"eps": -1.0}, r"eps is -1\.0; it must not be negative"),
            ({"out": torch.ones(2, 7)}, r"out has shape \[2, 7\]; \[2, 8\] is needed"),
            ({"residual": torch.ones(2, 8).half()}, "residual is float16; float32 is needed"),
            ({"residual": torch.ones(2, 16)[:, :8]}, "residual is not contiguous"),
        ],
    )
    def test_wrong_arguments_are_explained(self, norm, change, words):
        options = {"eps": EPS, **change}
        parameters = [torch.ones(8)] * (1 if norm is rms_norm else 2)
        with pytest.raises(KernelInputError, match=words):
            norm(torch.ones(2, 8), *parameters, **options)


@pytest.mark.parametrize("norm", [rms_norm, layer_norm])
@pytest.mark.parametrize("columns", [64, WHOLE_COLUMNS + 64])
@pytest.mark.filterwarnings("ignore:overflow encountered")
class TestHalfSums:
    """A square is finite in fp16 up to sqrt(65504) = 255.9."""

    def out_of(self, norm, columns, value, accumulate):
        x = torch.zeros(1, columns, dtype=torch.float16, device=DEVICE)
        # Two elements, so that the mean is zero; at 180 the sum of both squares is finite too.
        x[0, 0], x[0, 1] = value, -value
        weight, bias = torch.ones_like(x[0]), torch.zeros_like(x[0])
        parameters = (weight,) if norm is rms_norm else (weight, bias)
        return norm(x, *parameters, eps=EPS, accumulate=accumulate)

    def test_below_the_limit_it_is_right(self, norm, columns):
        out = self.out_of(norm, columns, 180.0, "float16")
        assert relative_error(out, self.out_of(norm, columns, 180.0, "float32")) <= 5e-3

    def test_above_the_limit_the_row_is_lost(self, norm, columns):
        for value in (256.0, 1e4):
            assert self.out_of(norm, columns, value, "float16").abs().max() == 0
            assert self.out_of(norm, columns, value, "float32").abs().max() > 1


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_single_square_overflows_between_255_and_256():
    for value, lost in ((255.5, False), (255.875, False), (256.0, True)):
        x = torch.zeros(1, 8, dtype=torch.float16, device=DEVICE)
        x[0, 0] = value
        out = rms_norm(x, torch.ones_like(x[0]), accumulate="float16")
        assert (out.abs().max() == 0) == lost


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_sum_overflows_though_no_square_does():
    x = torch.full((1, 64), 100.0, dtype=torch.float16, device=DEVICE)
    gain = torch.ones_like(x[0])
    assert rms_norm(x, gain, accumulate="float16").abs().max() == 0
    assert rms_norm(x, gain).abs().max() == 1


class TestFaults:
    def test_sums_in_fp16_are_caught_where_fp32_is_asked_for(self, tmp_path):
        faults = {"tl.float16 if HALF else tl.float32": "tl.float16"}
        rows = seeded(tmp_path, "kernels.norm.rows", faults)
        norm = seeded(tmp_path, "kernels.norm.rms_norm", {}, {"kernels.norm.rows": rows}).rms_norm
        out, oracle = run(norm, normal(2, 1000))
        assert relative_error(out, oracle(normal(2, 1000))) > tolerance("float32")

    def test_lanes_beyond_the_row_are_caught(self, tmp_path):
        faults = {"centred = tl.where(inside, values - mean, 0.0)": "centred = values - mean"}
        norm = seeded(tmp_path, "kernels.norm.layer_norm", faults).layer_norm
        x = normal(2, 129) + 1
        out, oracle = run(norm, x)
        assert relative_error(out, oracle(x)) > 0.1

    def test_variance_by_difference_is_caught(self, tmp_path):
        """Mean of squares less square of mean: cancels where the mean is large."""
        right = "row_squares(centred, HALF).to(tl.float32) / columns"
        faults = {right: "row_squares(values, HALF) / columns - mean * mean"}
        norm = seeded(tmp_path, "kernels.norm.layer_norm", faults).layer_norm
        x = normal(2, 129) + 300
        for product, caught in ((layer_norm, False), (norm, True)):
            out, oracle = run(product, x)
            assert (relative_error(out, oracle(x)) > 1e-4) == caught
