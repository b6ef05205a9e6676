"""The softmax and what it counts: the map of overflow and underflow in half precision."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import reference
from kernels.dtypes import tolerance
from kernels.errors import KernelInputError
from kernels.judging import relative_error
from kernels.softmax import Saturation, softmax
from tests.kernels.seeding import seeded

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def normal(*sizes, scale=3.0, seed=5):
    random = torch.Generator(DEVICE).manual_seed(seed)
    return scale * torch.randn(*sizes, generator=random, device=DEVICE)


def counted(x, **options):
    """Return (probabilities, totals, share of the probability that was flushed, by row)."""
    saturated = Saturation.of_rows(x.shape[0], x.device)
    out = softmax(x, saturated=saturated, **options)
    return out, saturated.totals(), saturated.flushed_mass


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 3),
    columns=st.one_of(st.integers(1, 300), st.sampled_from([1023, 1025, 8191, 8193])),
    dtype=st.sampled_from([torch.float16, torch.float32]),
    clamp=st.sampled_from([None, 1.0, 6.5]),
    scale=st.sampled_from([0.1, 1.0, 8.0]),
)
def test_any_row_equals_the_oracle(rows, columns, dtype, clamp, scale):
    x = normal(rows, columns, scale=scale).to(dtype)
    out, totals, lost = counted(x, clamp=clamp)
    name = str(dtype).removeprefix("torch.")
    assert relative_error(out, reference.softmax(x, clamp)) <= tolerance(name)
    assert totals["clamped"] == (0 if clamp is None else int((x.abs() > clamp).sum()))
    assert totals["nonfinite"] == totals["overflowed"] == totals["flushed"] == 0
    assert lost.max() == 0


def test_rows_sum_to_one():
    assert softmax(normal(5, 333)).sum(-1).sub(1).abs().max() < 1e-6


def test_no_rows_and_no_columns():
    assert softmax(torch.ones(0, 4, device=DEVICE)).shape == (0, 4)
    assert softmax(torch.ones(4, 0, device=DEVICE)).shape == (4, 0)


def test_a_masked_score_takes_no_probability():
    x = normal(2, 65)
    x[:, 3] = -math.inf
    out, totals, lost = counted(x)
    assert out[:, 3].abs().max() == 0
    assert relative_error(out, reference.softmax(x)) <= tolerance("float32")
    assert totals["nonfinite"] == 2
    assert totals["flushed"] == 0
    assert lost.max() == 0


def test_a_score_that_is_not_a_number_spoils_its_row_alone():
    x = normal(3, 65)
    x[1, 7] = math.nan
    out, totals, _ = counted(x, clamp=4.0)
    assert out[1].isnan().all()
    assert relative_error(out[[0, 2]], reference.softmax(x[[0, 2]], 4.0)) <= tolerance("float32")
    assert totals["nonfinite"] == 1


class TestHalf:
    """Catalogue F36 and F10: exponentials overflow above ln 65504 = 11.09 and vanish far below."""

    @pytest.mark.parametrize(
        ("score", "overflows"), [(11.0, 0), (11.0859375, 0), (11.1, 1), (20.0, 1)]
    )
    def test_without_the_maximum_subtracted_it_overflows_above_11_09(self, score, overflows):
        x = torch.tensor([[0.0, 1.0, score]], device=DEVICE)
        options = {"subtract_max": False, "accumulate": "float16"}
        out, totals, _ = counted(x, **options)
        assert totals["overflowed"] == overflows
        assert bool(out.isnan().any()) == bool(overflows)
        _, with_maximum, _ = counted(x, accumulate="float16")
        assert with_maximum["overflowed"] == 0

    def test_the_sum_overflows_before_any_exponential(self):
        x = torch.full((1, 4), 10.5, device=DEVICE)
        out, totals, _ = counted(x, subtract_max=False, accumulate="float16")
        assert totals["overflowed"] == 0
        assert out.abs().max() == 0
        assert softmax(x, accumulate="float16").sub(0.25).abs().max() < 1e-3

    @pytest.mark.parametrize("scale", [1.0, 10.0, 1e3, 1e4])
    def test_a_clamp_above_zero_never_acts_after_the_maximum(self, scale):
        x = normal(4, 500, scale=scale)
        _, totals, _ = counted(x, clamp=11.0, clamp_at="exponents", accumulate="float16")
        assert totals["clamped"] == 0

    def test_without_the_maximum_a_late_clamp_acts_and_changes_the_answer(self):
        x = torch.tensor([[12.0, 14.0, 1.0]], device=DEVICE)
        out, totals, _ = counted(x, clamp=11.0, clamp_at="exponents", subtract_max=False)
        assert totals["clamped"] == 2
        assert out[0, 0] == out[0, 1]

    def test_a_clamp_of_the_scores_changes_the_answer(self):
        x = torch.tensor([[12.0, 14.0, 1.0]], device=DEVICE)
        out, totals, _ = counted(x, clamp=11.0)
        assert totals["clamped"] == 2
        assert out[0, 0] == out[0, 1]
        assert reference.softmax(x)[0, 1] > 0.85

    @pytest.mark.parametrize(
        ("below", "flushed"), [(9.0, 0), (16.6, 0), (17.25, 0), (17.375, 1), (30.0, 1)]
    )
    def test_terms_vanish_below_half_the_least_subnormal(self, below, flushed):
        """2^-24 = e^-16.64 is the least; to nearest, what exceeds half of it (e^-17.33) stays."""
        x = torch.tensor([[0.0, -below]], device=DEVICE).half()
        out, totals, lost = counted(x.float(), accumulate="float16")
        assert totals["flushed"] == flushed
        assert (out[0, 1] == 0) == bool(flushed)
        expected = math.exp(-below) / (1 + math.exp(-below)) if flushed else 0.0
        assert lost.item() == pytest.approx(expected, rel=1e-3)

    def test_many_small_terms_are_a_share_that_matters(self):
        """So many terms of e^-17.5 weigh 0.3 %; in fp32 none is lost."""
        x = torch.full((1, 2**17), -17.5, device=DEVICE)
        x[0, 0] = 0.0
        _, totals, lost = counted(x, accumulate="float16")
        assert totals["flushed"] == 2**17 - 1
        share = (2**17 - 1) * math.exp(-17.5)
        assert lost.item() == pytest.approx(share / (1 + share), rel=1e-3)
        assert counted(x)[1]["flushed"] == 0

    def test_scores_beyond_half_precision_need_the_clamp(self):
        x = torch.tensor([[1e5, 9e4, 0.0]], device=DEVICE)
        out, totals, _ = counted(x, accumulate="float16")
        assert out.isnan().any()
        assert totals["overflowed"] == 2
        assert totals["nonfinite"] == 0
        clamped, totals, _ = counted(x, accumulate="float16", clamp=65504.0)
        assert clamped.tolist() == [[0.5, 0.5, 0.0]]
        assert totals["clamped"] == 2
        assert softmax(x).tolist() == [[1.0, 0.0, 0.0]]


@settings(max_examples=20, deadline=None)
@given(
    columns=st.integers(1, 200),
    scale=st.sampled_from([1.0, 6.0, 12.0]),
    clamp=st.sampled_from([None, 8.0]),
    subtract=st.booleans(),
    seed=st.integers(0, 99),
)
def test_counts_are_those_of_the_oracle(columns, scale, clamp, subtract, seed):
    x = normal(2, columns, scale=scale, seed=seed).half()
    saturated = Saturation.of_rows(2, x.device)
    softmax(x, clamp=clamp, subtract_max=subtract, accumulate="float16", saturated=saturated)
    counts, mass = reference.softmax_saturation(x, clamp, subtract_max=subtract, half=True)
    assert torch.equal(saturated.counts, counts.to(torch.int32))
    assert torch.allclose(saturated.flushed_mass.double(), mass, rtol=1e-3, atol=1e-12)


class TestFaults:
    def test_a_sum_in_fp16_is_caught_where_fp32_is_asked_for(self, tmp_path):
        faults = {"tl.zeros((), tl.float16 if HALF else tl.float32)": "tl.zeros((), tl.float16)"}
        wrong = seeded(tmp_path, "kernels.softmax", faults).softmax
        x = normal(2, 3000)
        assert relative_error(wrong(x), reference.softmax(x)) > tolerance("float32")

    def test_lanes_beyond_the_row_are_caught(self, tmp_path):
        faults = {'other=float("-inf")': "other=0.0", "tl.where(inside, values, 0.0)": "values"}
        wrong = seeded(tmp_path, "kernels.softmax", faults).softmax
        x = normal(2, 129)
        assert relative_error(wrong(x), reference.softmax(x)) > tolerance("float16")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"clamp": 0.0}, r"clamp is 0\.0; it must be above 0"),
        ({"clamp_at": "end"}, "clamp_at is 'end'; known are scores, exponents"),
        ({"accumulate": "fp8"}, "accumulate is 'fp8'; known are float32, float16"),
        ({"out": torch.ones(2, 4).half()}, "out is float16; float32 is needed"),
        (
            {"saturated": Saturation.of_rows(3, torch.device("cpu"))},
            r"counts has shape \[3, 4\]; \[2, 4\] is needed",
        ),
    ],
)
def test_wrong_arguments_are_explained(options, words):
    with pytest.raises(KernelInputError, match=words):
        softmax(torch.ones(2, 4), **options)


def test_counters_of_a_wider_tensor_are_refused():
    x = normal(3, 8)
    counts = torch.zeros(3, 8, dtype=torch.int32)[:, :4]
    with pytest.raises(KernelInputError, match="counts are not contiguous"):
        softmax(x, saturated=Saturation(counts, torch.zeros(3)))
