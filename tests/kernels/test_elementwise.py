"""The rotary split and the gated activation."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import reference
from kernels.activation import silu_mul
from kernels.dtypes import tolerance
from kernels.errors import KernelInputError
from kernels.judging import relative_error
from kernels.rotary import qkv_rotary, rotary_tables
from tests.kernels.seeding import seeded

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def normal(*sizes, seed=5):
    random = torch.Generator(DEVICE).manual_seed(seed)
    return torch.randn(*sizes, generator=random, device=DEVICE)


def rotary_error(tokens, heads, kv_heads, dim, dtype, split=qkv_rotary):
    width = (heads + 2 * kv_heads) * dim
    qkv = normal(tokens, width + 3).to(dtype)[:, :width]
    cos, sin = rotary_tables(50, dim, device=DEVICE)
    positions = torch.arange(tokens, device=DEVICE) * 7 % 50
    found = split(qkv, cos, sin, positions, heads, kv_heads, dim)
    wanted = reference.qkv_rotary(qkv, cos, sin, positions, heads, kv_heads)
    return max(relative_error(a, b) for a, b in zip(found, wanted, strict=True))


@settings(max_examples=20, deadline=None)
@given(
    tokens=st.integers(1, 4),
    heads=st.sampled_from([1, 3, 8, 9]),
    kv_heads=st.sampled_from([1, 2, 8]),
    dim=st.sampled_from([2, 64, 80, 96, 128, 256]),
    dtype=st.sampled_from([torch.float16, torch.float32]),
)
def test_any_heads_and_dim_equal_the_oracle(tokens, heads, kv_heads, dim, dtype):
    name = str(dtype).removeprefix("torch.")
    assert rotary_error(tokens, heads, kv_heads, dim, dtype) <= tolerance(name)


def test_position_zero_turns_nothing():
    qkv = normal(2, 4 * 8)
    cos, sin = rotary_tables(1, 8, device=DEVICE)
    positions = torch.zeros(2, dtype=torch.int64, device=DEVICE)
    parts = qkv_rotary(qkv, cos, sin, positions, 2, 1, 8)
    assert torch.equal(torch.cat(parts, dim=1).flatten(1), qkv)


def test_products_of_query_and_key_depend_on_their_distance_alone():
    vector = normal(1, 64)
    qkv = torch.cat([vector, vector, vector], dim=1).repeat(4, 1)
    cos, sin = rotary_tables(100, 64, device=DEVICE)
    positions = torch.tensor([3, 10, 53, 60], device=DEVICE)
    query, key, _ = qkv_rotary(qkv, cos, sin, positions, 1, 1, 64)
    near, far = (query[i, 0] @ key[j, 0] for i, j in ((1, 0), (3, 2)))
    assert near.item() == pytest.approx(far.item(), rel=1e-4)
    assert query[3, 0].norm().item() == pytest.approx(vector.norm().item(), rel=1e-5)


def test_tables_hold_the_angles():
    cos, sin = rotary_tables(3, 4, base=100.0)
    assert cos[2].tolist() == pytest.approx([math.cos(2), math.cos(0.2)])
    assert sin[2].tolist() == pytest.approx([math.sin(2), math.sin(0.2)])


def test_turning_the_wrong_way_is_caught(tmp_path):
    faults = {
        "first * c - second * s": "first * c + second * s",
        "second * c + first * s": "second * c - first * s",
    }
    split = seeded(tmp_path, "kernels.rotary", faults).qkv_rotary
    assert rotary_error(3, 4, 2, 64, torch.float32, split) > 0.1


def test_a_value_that_is_turned_is_caught(tmp_path):
    faults = {"tl.store(to_value, first,": "tl.store(to_value, turned_first,"}
    split = seeded(tmp_path, "kernels.rotary", faults).qkv_rotary
    assert rotary_error(3, 4, 2, 64, torch.float32, split) > 0.1


def test_no_tokens():
    cos, sin = rotary_tables(1, 8)
    none = torch.zeros(0, dtype=torch.int64)
    query, key, value = qkv_rotary(torch.ones(0, 32), cos, sin, none, 2, 1, 8)
    assert [list(part.shape) for part in (query, key, value)] == [[0, 2, 8], [0, 1, 8], [0, 1, 8]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"dim": 7}, "dim is 7; an even number above 0 is needed"),
        ({"heads": 0}, "heads are 0 and 1; both must be above 0"),
        ({"heads": 3}, r"qkv has shape \[2, 32\]; \[tokens, 40\] is needed"),
        ({"positions": torch.zeros(2, dtype=torch.int32)}, "positions is int32; int64 is needed"),
        ({"sin": torch.ones(2, 4)}, r"sin has shape \[2, 4\]; \[1, 4\] is needed"),
    ],
)
def test_wrong_arguments_of_the_split_are_explained(change, words):
    cos, sin = rotary_tables(1, 8)
    arguments = {
        "qkv": torch.ones(2, 32),
        "cos": cos,
        "sin": sin,
        "positions": torch.zeros(2, dtype=torch.int64),
        "heads": 2,
        "kv_heads": 1,
        "dim": 8,
    }
    with pytest.raises(KernelInputError, match=words):
        qkv_rotary(**{**arguments, **change})


@settings(max_examples=15, deadline=None)
@given(
    rows=st.integers(1, 3),
    width=st.sampled_from([1, 2, 127, 128, 129, 1023, 1025, 2049]),
    dtype=st.sampled_from([torch.float16, torch.float32]),
    padding=st.integers(0, 3),
)
def test_any_width_equals_the_oracle(rows, width, dtype, padding):
    gate_up = (3 * normal(rows, 2 * width + padding)).to(dtype)[:, : 2 * width]
    error = relative_error(silu_mul(gate_up), reference.silu_mul(gate_up))
    assert error <= tolerance(str(dtype).removeprefix("torch."))


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_large_gates_neither_overflow_nor_vanish():
    gate_up = torch.tensor([[-200.0, 200.0, 0.0, 2.0, 2.0, 2.0]], device=DEVICE)
    assert silu_mul(gate_up).tolist() == [[0.0, 400.0, 0.0]]


def test_gate_and_up_the_other_way_round_are_caught(tmp_path):
    faults = {"gate / (1.0 + tl.exp(-gate)) * up": "up / (1.0 + tl.exp(-up)) * gate"}
    wrong = seeded(tmp_path, "kernels.activation", faults).silu_mul
    gate_up = normal(2, 64)
    assert relative_error(wrong(gate_up), reference.silu_mul(gate_up)) > 0.1


def test_wrong_arguments_of_the_activation_are_explained():
    assert silu_mul(torch.ones(0, 4)).shape == (0, 2)
    with pytest.raises(KernelInputError, match="gate_up has 3 columns; an even number is needed"):
        silu_mul(torch.ones(2, 3))
    with pytest.raises(KernelInputError, match=r"out has shape \[2, 4\]; \[2, 2\] is needed"):
        silu_mul(torch.ones(2, 4), out=torch.ones(2, 4))
