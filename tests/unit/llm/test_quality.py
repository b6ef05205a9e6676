"""The errors of the tables are those of rounding Gaussian data."""

import numpy as np
import pytest

from twin.llm.quality import KV_LOSS, LOSSLESS, WEIGHT_LOSS, caveats, kv_error, weight_error

HEAD = 128


def gaussian(group):
    rng = np.random.default_rng(0)
    return rng.standard_normal((max(1, 2**21 // group), group))


def integers(bits, group):
    """Relative L2 error of symmetric integers with a scale a group."""
    x = gaussian(group)
    most = 2 ** (bits - 1) - 1
    scale = np.abs(x).max(axis=1, keepdims=True) / most
    return error(x, np.clip(np.round(x / scale), -most, most) * scale)


def floats(mantissa_bits):
    """Relative L2 error of rounding to a mantissa; no value of a Gaussian leaves the exponents."""
    x = gaussian(HEAD)
    exponent = np.floor(np.log2(np.abs(x)))
    step = 2.0 ** (exponent - mantissa_bits)
    return error(x, np.round(x / step) * step)


def error(x, y):
    return float(np.sqrt(((x - y) ** 2).sum() / (x**2).sum()))


@pytest.mark.parametrize(
    ("dtype", "computed"),
    [
        ("fp8", floats(3)),
        ("fp8_e5m2", floats(2)),
        ("int8_per_token_head", integers(8, HEAD)),
        ("fp8_per_token_head", floats(3)),
    ],
)
def test_kv_errors_are_those_of_rounding(dtype, computed):
    assert kv_error(dtype) == pytest.approx(computed, rel=0.1)


def test_weight_errors_are_those_of_rounding():
    assert weight_error("fp8") == pytest.approx(floats(3), rel=0.1)
    assert weight_error("int8") == pytest.approx(integers(8, 4096), rel=0.1)
    assert weight_error(None) == weight_error("none") == 0


def test_int4_lies_between_a_grid_of_16_and_one_of_15():
    symmetric = integers(4, HEAD)
    assert kv_error("int4_per_token_head") == weight_error("int4")
    assert 0.8 * symmetric < kv_error("int4_per_token_head") < 1.1 * symmetric


def test_every_loss_is_told_with_a_source_or_its_absence():
    for loss in (*KV_LOSS.values(), *WEIGHT_LOSS.values()):
        assert all(each.text and each.source for each in loss.evidence)
        assert loss.evidence or loss is LOSSLESS
    assert caveats("auto", None) == ()
    kv, weights = caveats("fp8", "int4")
    assert "2.7%" in kv
    assert "vLLM blog" in kv
    assert "10.0%" in weights
    assert "arXiv 2411.02355" in weights
