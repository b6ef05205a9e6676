"""Products in fp8 and with weights in int8 and int4: sizes, packing, noise floors, faults."""

from dataclasses import replace

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kernels.dtypes import tolerance
from kernels.errors import KernelInputError
from kernels.gemm.config import FP8_CONFIGS, GemmConfig
from kernels.gemm.fp8 import FP8, matmul_fp8, quantise_fp8
from kernels.gemm.quantised_weight import quantise_weight
from kernels.gemm.weight_only import INT4_CONFIGS, INT8_CONFIGS, matmul_weight_only
from kernels.judging import relative_error
from kernels.reference import dequantise_weight
from kernels.reference import matmul_fp8 as fp8_reference
from kernels.reference import matmul_weight_only as weight_reference
from tests.kernels.seeding import product_error, seeded

SIZES = st.sampled_from([1, 2, 16, 17, 33, 65, 127, 128, 129])
SMALL = GemmConfig(64, 64, 32, 1, 4, 3)
# The interpreter is slow: shrinking a failure would take minutes.
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def normal(*sizes, seed=5):
    random = torch.Generator(DEVICE).manual_seed(seed)
    return torch.randn(*sizes, generator=random, device=DEVICE)


def fp8_error(m, n, k, axis, config):
    (a, scale_a), (w, scale_b) = (
        quantise_fp8(normal(size, k, seed=seed), axis=axis) for seed, size in ((1, m), (2, n))
    )
    out = torch.full((m, n), float("nan"), dtype=torch.float16, device=DEVICE)
    matmul_fp8(a, w.T, scale_a, scale_b, out=out, config=config)
    return product_error(out, fp8_reference(a, w.T, scale_a, scale_b), k)


@pytest.mark.skipif(
    torch.cuda.is_available() and torch.cuda.get_device_capability() < (8, 9),
    reason="fp8 needs capability 8.9",
)
class TestFp8:
    @settings(max_examples=15, deadline=None, phases=NO_SHRINKING)
    @given(
        m=SIZES, n=SIZES, k=SIZES, axis=st.sampled_from([None, 0]), split=st.sampled_from([1, 2])
    )
    def test_any_size_scale_and_split_equals_the_oracle(self, m, n, k, axis, split):
        error = fp8_error(m, n, k, axis, replace(SMALL, split_k=split))
        assert error <= tolerance("float16")

    @pytest.mark.parametrize("config", FP8_CONFIGS, ids=str)
    def test_every_configuration_is_right_past_the_edge_of_its_tile(self, config):
        sizes = (config.block_m + 1, config.block_n - 1, config.block_k + 3)
        assert fp8_error(*sizes, 0, config) <= tolerance("float16")

    def test_every_finite_code_is_read_as_what_it_is(self):
        codes = torch.arange(256, dtype=torch.uint8).view(FP8).float()
        codes = codes[codes.isfinite()].to(FP8).to(DEVICE)[None]
        one, unit = torch.ones(1, 1, device=DEVICE).to(FP8), torch.ones(1, device=DEVICE)
        out = torch.empty(1, codes.shape[1], dtype=torch.float16, device=DEVICE)
        matmul_fp8(one, codes, unit, unit, out=out)
        assert torch.equal(out.float(), codes.float())

    def test_a_weight_by_rows_is_refused(self):
        a, scale = quantise_fp8(normal(4, 32))
        b, _ = quantise_fp8(normal(32, 8))
        out = torch.empty(4, 8, dtype=torch.float16, device=DEVICE)
        with pytest.raises(KernelInputError, match=r"b\.T is strided along its last axis"):
            matmul_fp8(a, b, scale, scale, out=out)

    def test_scales_of_another_length_are_refused(self):
        a, scale = quantise_fp8(normal(4, 32), axis=0)
        w, _ = quantise_fp8(normal(8, 32), axis=0)
        out = torch.empty(4, 8, dtype=torch.float16, device=DEVICE)
        with pytest.raises(KernelInputError, match=r"scale_b has shape \[4\]; \[8\] is needed"):
            matmul_fp8(a, w.T, scale, scale, out=out)


def test_fp8_rounding_has_the_noise_of_its_format():
    """Physics 5.3: e4m3 of Gaussian data, relative L2 error 2.7 %."""
    values = normal(64, 4096)
    for axis in (None, 0, 1):
        codes, scales = quantise_fp8(values, axis=axis)
        shaped = scales[:, None] if axis == 0 else scales
        error = ((codes.float() * shaped - values).norm() / values.norm()).item()
        assert 0.024 <= error <= 0.029


def test_fp8_of_zeros_is_zero():
    codes, scales = quantise_fp8(torch.zeros(2, 4), axis=0)
    assert codes.float().tolist() == [[0.0] * 4] * 2
    assert scales.tolist() == [1.0, 1.0]


@st.composite
def weight_sizes(draw):
    bits, group = draw(st.sampled_from([(8, None), (4, 32), (4, 64), (4, 128)]))
    k = draw(SIZES) if group is None else group * draw(st.integers(1, 3))
    return draw(SIZES), draw(SIZES), k, bits, group


def weight_error(m, n, k, bits, group, config, product=matmul_weight_only):
    a, weight = normal(m, k, seed=1).half(), normal(k, n, seed=2)
    packed, scales = quantise_weight(weight, bits=bits, group=group)
    out = torch.full((m, n), float("nan"), dtype=torch.float16, device=DEVICE)
    product(a, packed, scales, bits=bits, group=group, out=out, config=config)
    return product_error(out, weight_reference(a, packed, scales, group), k)


class TestWeightOnly:
    @settings(max_examples=20, deadline=None, phases=NO_SHRINKING)
    @given(sizes=weight_sizes(), split=st.sampled_from([1, 2, 3]))
    def test_any_size_group_and_split_equals_the_oracle(self, sizes, split):
        assert weight_error(*sizes, replace(SMALL, split_k=split)) <= tolerance("float16")

    @pytest.mark.parametrize("bits", [4, 8])
    @pytest.mark.parametrize("number", range(len(INT8_CONFIGS)))
    def test_every_configuration_is_right_past_the_edge_of_its_tile(self, bits, number):
        config, group = (INT8_CONFIGS, None) if bits == 8 else (INT4_CONFIGS, 64)
        config = config[number]
        sizes = (config.block_m + 1, config.block_n - 1, 192)
        assert weight_error(*sizes, bits, group, config) <= tolerance("float16")

    def test_an_activation_of_many_rows_apart(self):
        a = normal(6, 80).half()[::2, :64]
        packed, scales = quantise_weight(normal(64, 16), bits=4, group=32)
        out = matmul_weight_only(a, packed, scales, bits=4, group=32)
        assert relative_error(out, weight_reference(a, packed, scales, 32)) <= 1e-3

    @pytest.mark.parametrize("group", [32, 64])
    def test_nibbles_in_the_other_order_are_caught(self, group, tmp_path):
        faults = {"packed & 15": "packed >>  4", "packed >> 4)": "packed & 15)"}
        product = seeded(tmp_path, "kernels.gemm.weight_only", faults).matmul_weight_only
        assert weight_error(4, 16, 2 * group, 4, group, SMALL, product) > 0.5

    def test_the_scale_of_another_group_is_caught(self, tmp_path):
        faults = {"        s_at += n\n": ""}
        product = seeded(tmp_path, "kernels.gemm.weight_only", faults).matmul_weight_only
        assert weight_error(4, 16, 128, 4, 64, SMALL, product) > 10 * tolerance("float16")

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"bits": 3}, "bits is 3; 4 or 8 is needed"),
            ({"group": 16}, "group is 16; 32, 64 or 128 is needed"),
            ({"group": 128}, "k is 64; a multiple of the group 128 is needed"),
            ({"bits": 8}, "group is 32; at 8 bits a scale belongs to a column"),
            ({"packed": torch.zeros(64, 8, dtype=torch.uint8)}, r"packed has shape \[64, 8\]"),
            ({"packed": torch.zeros(32, 8, dtype=torch.int8)}, "packed is int8; uint8 is needed"),
            ({"scales": torch.ones(1, 8).half()}, r"scales has shape \[1, 8\]; \[2, 8\]"),
            ({"a": torch.ones(2, 64)}, "a is float32; bfloat16, float16 is needed"),
        ],
    )
    def test_wrong_arguments_are_explained(self, change, words):
        arguments = {
            "a": torch.ones(2, 64).half(),
            "packed": torch.zeros(32, 8, dtype=torch.uint8),
            "scales": torch.ones(2, 8).half(),
            "bits": 4,
            "group": 32,
        }
        with pytest.raises(KernelInputError, match=words):
            matmul_weight_only(**{**arguments, **change})


class TestQuantiseWeight:
    @pytest.mark.parametrize(
        ("bits", "group", "least", "most"),
        # Physics 5.3 gives 7.8, 9.0 and 10.0 % for int4 between the least and largest of a group;
        # symmetric codes use 15 levels of twice the largest, so lie above that floor.
        [(8, None, 0.008, 0.012), (4, 32, 0.078, 0.11), (4, 64, 0.09, 0.12), (4, 128, 0.10, 0.13)],
    )
    def test_its_error_is_that_of_its_step(self, bits, group, least, most):
        weight = normal(2048, 64)
        packed, scales = quantise_weight(weight, bits=bits, group=group)
        found = dequantise_weight(packed, scales, group)
        error = ((found - weight.double()).norm() / weight.double().norm()).item()
        assert least <= error <= most

    @settings(max_examples=30, deadline=None)
    @given(
        groups=st.integers(0, 3),
        n=st.integers(0, 5),
        kind=st.sampled_from([(8, None), (4, 32), (4, 128)]),
        magnitude=st.sampled_from([0.0, 1e-8, 1e-3, 1.0, 1e4]),
    )
    def test_each_weight_is_within_half_a_step(self, groups, n, kind, magnitude):
        bits, group = kind
        weight = magnitude * normal((group or 32) * groups, n)
        packed, scales = quantise_weight(weight, bits=bits, group=group)
        found = dequantise_weight(packed, scales, group)
        steps = scales.double()
        if group is not None:
            steps = steps.repeat_interleave(group, dim=0)
        # Where fp16 cannot hold the scale, all of the weight is lost: below 7 · 2^-25.
        assert ((found - weight.double()).abs() <= 0.51 * steps + 4e-6).all()

    def test_packing_is_what_its_words_say(self):
        weight = torch.zeros(32, 1)
        weight[3, 0], weight[19, 0] = 7.0, -7.0
        packed, scales = quantise_weight(weight, bits=4, group=32)
        assert scales.tolist() == [[1.0]]
        assert packed[3, 0].item() == (7 + 8) | ((-7 + 8) << 4)
        assert packed[4, 0].item() == 8 | (8 << 4)
