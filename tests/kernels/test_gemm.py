"""The dense product against its oracle: odd sizes, strides, every configuration, seeded faults."""

from dataclasses import replace

import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kernels.dtypes import tolerance
from kernels.errors import KernelInputError
from kernels.gemm import config as table
from kernels.gemm.config import GemmConfig, candidate_configs, config_for
from kernels.gemm.dense import are_aligned, matmul, workspace_elements
from kernels.gemm.dense_cases import operands
from kernels.judging import relative_error
from kernels.reference import matmul as reference
from tests.kernels.seeding import product_error, seeded

EDGES = st.sampled_from([1, 2, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129])
PADDING = st.sampled_from([0, 1, 3, 8, 16])
# The interpreter is slow: shrinking a failure would take minutes.
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def error_of(shape, config, dtype="float16", product=matmul, seed=3):
    a, b, c = operands(shape, dtype, DEVICE, seed)
    product(a, b, out=c, config=config)
    return product_error(c, reference(a, b), shape["k"])


@settings(max_examples=25, deadline=None, phases=NO_SHRINKING)
@given(
    m=EDGES,
    n=EDGES,
    k=EDGES,
    padding=st.tuples(PADDING, PADDING, PADDING),
    transposed=st.booleans(),
    dtype=st.sampled_from(["float16", "float32"]),
    split=st.sampled_from([1, 2, 3]),
)
def test_any_size_stride_and_split_equals_the_oracle(m, n, k, padding, transposed, dtype, split):
    shape = {"m": m, "n": n, "k": k, "lda": k + padding[0], "ldc": n + padding[2]}
    shape |= {"transposed_b": transposed, "ldb": (k if transposed else n) + padding[1]}
    config = GemmConfig(64, 64, 32, 1, 4, 3, split)
    assert error_of(shape, config, dtype) <= tolerance(dtype)


@pytest.mark.parametrize("config", [*table.HALF_CONFIGS, *table.UNALIGNED_CONFIGS], ids=str)
def test_every_configuration_is_right_past_the_edge_of_its_tile(config):
    shape = {"m": config.block_m + 1, "n": config.block_n - 1, "k": config.block_k + 3}
    assert error_of(shape, config) <= tolerance("float16")


@pytest.mark.parametrize("config", table.SINGLE_CONFIGS, ids=str)
def test_every_fp32_configuration_is_right(config):
    shape = {"m": config.block_m + 1, "n": config.block_n - 1, "k": config.block_k + 3}
    assert error_of(shape, config, "float32") <= tolerance("float32")


def test_tiles_of_the_last_group_are_all_computed():
    """Five tile rows in groups of four: the last group is lower than the others."""
    shape = {"m": 16 * 5 - 3, "n": 100, "k": 16}
    assert error_of(shape, GemmConfig(16, 16, 16, 4, 4, 3)) <= tolerance("float16")


def test_what_lies_beside_the_output_stays(device):
    a, b, c = operands({"m": 5, "n": 7, "k": 9, "ldc": 12}, "float16", device, 1)
    whole = c._base
    matmul(a, b, out=c)
    assert whole[:, 7:].isnan().all()
    assert not whole[:, :7].isnan().any()


def test_an_empty_product_needs_no_launch(device):
    a = torch.ones(0, 4, device=device)
    assert matmul(a, torch.ones(4, 3, device=device)).shape == (0, 3)
    b = torch.ones(4, 0, device=device)
    assert matmul(torch.ones(2, 4, device=device), b).shape == (2, 0)
    nothing = matmul(torch.ones(2, 0, device=device), torch.ones(0, 3, device=device))
    assert nothing.tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"b": torch.ones(5, 3)}, r"b has shape \[5, 3\]; \[4, n\] is needed"),
        ({"b": torch.ones(())}, r"b has shape \[\]; \[4, n\] is needed"),
        (
            {"a": torch.empty(2**23 + 4).as_strided((2, 4), (2**23, 1))},
            "a has a stride of 8388608 elements; less than 8388608 is needed",
        ),
        ({"b": torch.ones(4, 3, dtype=torch.float16)}, "b is float16; float32 is needed"),
        ({"a": torch.ones(2, 8)[:, ::2]}, "a is strided along its last axis"),
        ({"a": torch.ones(2, 4, dtype=torch.int32)}, "a is int32; bfloat16, float16, float32"),
        ({"out": torch.ones(3, 3)}, r"out has shape \[3, 3\]; \[2, 3\] is needed"),
        (
            {"workspace": torch.ones(11), "config": GemmConfig(16, 16, 16, 1, 4, 3, 2)},
            "workspace has 11 elements; 12 are needed",
        ),
    ],
)
def test_wrong_arguments_are_explained(change, words):
    arguments = {"a": torch.ones(2, 4), "b": torch.ones(4, 3), **change}
    with pytest.raises(KernelInputError, match=words):
        matmul(**arguments)


def test_a_split_product_uses_the_workspace_it_is_given(device):
    config = GemmConfig(16, 16, 16, 1, 4, 3, 2)
    a, b, c = operands({"m": 4, "n": 6, "k": 64}, "float16", device, 2)
    workspace = torch.full((workspace_elements(4, 6, config) + 1,), float("nan"), device=device)
    matmul(a, b, out=c, config=config, workspace=workspace)
    assert relative_error(workspace[:48].view(2, 4, 6).sum(0), reference(a, b)) < 1e-5
    assert workspace[48].isnan()


DEEP = {"m": 8, "n": 8, "k": 4096}
SMALL = GemmConfig(16, 16, 32, 8, 4, 3)
IN_FP16 = {
    "BLOCK_N), tl.float32)": "BLOCK_N), tl.float16)",
    "max_num_imprecise_acc=IMPRECISE": "out_dtype=tl.float16",
}


class TestFaults:
    """What the tolerance must catch; each fault is put into the kernel's own source."""

    def product(self, folder, faults):
        tiles = seeded(folder, "kernels.gemm.tiles", faults)
        instead = {"kernels.gemm.tiles": tiles}
        return seeded(folder, "kernels.gemm.dense", {}, instead).matmul

    def test_the_unchanged_source_passes(self, tmp_path):
        error = error_of(DEEP, SMALL, product=self.product(tmp_path, {}))
        assert error <= tolerance("float16")

    def test_accumulation_in_fp16_is_caught(self, tmp_path):
        error = error_of(DEEP, SMALL, product=self.product(tmp_path, IN_FP16))
        assert error > tolerance("float16")

    def test_a_missing_mask_along_k_is_caught(self, tmp_path):
        faults = {"in_k = depth < k - start - step * BLOCK_K": "in_k = depth < BLOCK_K"}
        product = self.product(tmp_path, faults)
        a, b = torch.randn(4, 64, device=DEVICE), torch.randn(64, 16, device=DEVICE)
        out = product(a[:, :33], b[:33], config=SMALL)
        assert relative_error(out, reference(a[:, :33], b[:33])) > tolerance("float32")

    def test_a_tile_row_left_out_is_caught(self, tmp_path):
        faults = {"first + within % height": "first + within % GROUP_M"}
        product = self.product(tmp_path, faults)
        config = replace(SMALL, group_m=4)
        assert error_of({"m": 77, "n": 32, "k": 32}, config, product=product) == float("inf")

    def test_a_split_left_out_of_the_sum_is_caught(self, tmp_path):
        faults = {"tl.static_range(SPLIT_K)": "tl.static_range(SPLIT_K - 1)"}
        product = seeded(tmp_path, "kernels.gemm.dense", faults).matmul
        config = replace(SMALL, split_k=4)
        assert error_of({"m": 4, "n": 16, "k": 256}, config, product=product) > 0.1


class TestChoice:
    def test_a_large_product_takes_the_largest_tile(self):
        config = config_for(8192, 8192, 8192, 132)
        assert (config.block_m, config.block_n, config.split_k) == (128, 256, 1)

    def test_a_small_batch_splits_k_to_fill_the_gpu(self):
        config = config_for(1, 4096, 14336, 132)
        assert config.block_m == 16
        assert config.split_k > 1
        assert config.tiles(1, 4096) * config.split_k >= 0.9 * 132

    @given(
        m=st.integers(1, 9000),
        n=st.integers(1, 9000),
        k=st.integers(1, 9000),
        size=st.sampled_from([1, 2, 4]),
        kib=st.sampled_from([99, 163, 227]),
        aligned=st.booleans(),
    )
    @settings(max_examples=60, deadline=None)
    def test_candidates_fit_and_the_choice_is_one_of_them(self, m, n, k, size, kib, aligned):
        configs = table.configs_for(size, aligned=aligned)
        options = {"table": configs, "element_bytes": size, "shared_bytes": kib * 1024}
        candidates = candidate_configs(m, n, k, **options)
        assert len(set(candidates)) == len(candidates)
        for config in candidates:
            assert config.shared_bytes(size) <= kib * 1024
            assert config.split_k == 1 or k // config.split_k >= 4 * config.block_k
        assert config_for(m, n, k, 108, **options) in candidates

    def test_no_tile_fits(self):
        with pytest.raises(KernelInputError, match="no tile fits 1024 bytes"):
            config_for(1, 1, 1, 1, shared_bytes=1024)

    @pytest.mark.parametrize(
        ("lda", "ldb", "transposed", "aligned"),
        [
            (64, 32, False, True),
            (65, 32, False, False),
            (64, 33, False, False),
            (64, 72, True, False),
        ],
    )
    def test_rows_off_sixteen_elements_take_the_small_tiles(self, lda, ldb, transposed, aligned):
        shape = {"m": 16, "n": 32, "k": 64, "lda": lda, "ldb": ldb, "transposed_b": transposed}
        a, b, _ = operands(shape, "float16", torch.device("cpu"), 0)
        assert are_aligned(a, b) is aligned
