"""Query, key and value out of one packed product, the first two rotated by their position."""

from functools import partial

import torch
import triton
import triton.language as tl

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.checks import check, check_tensor
from kernels.dtypes import FLOATS, tolerance, torch_dtype
from kernels.reference import qkv_rotary as reference

_HEADS = 8
"""Heads that a program takes."""


@triton.jit
def _qkv_rotary(
    qkv,
    cos,
    sin,
    positions,
    query,
    key,
    value,
    heads,
    kv_heads,
    row_stride,
    HALF: tl.constexpr,
    HALF_BLOCK: tl.constexpr,
    HEADS: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    head = (tl.program_id(1) * HEADS + tl.arange(0, HEADS))[:, None]
    lane = tl.arange(0, HALF_BLOCK)[None, :]
    inside = (head < heads + 2 * kv_heads) & (lane < HALF)
    at = qkv + token * row_stride + head * (2 * HALF) + lane
    first = tl.load(at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(at + HALF, mask=inside, other=0.0).to(tl.float32)
    turn = tl.load(positions + token) * HALF + lane
    c = tl.load(cos + turn, mask=lane < HALF, other=0.0).to(tl.float32)
    s = tl.load(sin + turn, mask=lane < HALF, other=0.0).to(tl.float32)
    # The plane of lanes i and i + dim / 2 turns by the i-th angle (GPT-NeoX's pairing).
    turned_first, turned_second = first * c - second * s, second * c + first * s
    is_query = inside & (head < heads)
    is_key = inside & (head >= heads) & (head < heads + kv_heads)
    is_value = inside & (head >= heads + kv_heads)
    to_query = query + (token * heads + head) * (2 * HALF) + lane
    to_key = key + (token * kv_heads + head - heads) * (2 * HALF) + lane
    to_value = value + (token * kv_heads + head - heads - kv_heads) * (2 * HALF) + lane
    tl.store(to_query, turned_first, mask=is_query)
    tl.store(to_query + HALF, turned_second, mask=is_query)
    tl.store(to_key, turned_first, mask=is_key)
    tl.store(to_key + HALF, turned_second, mask=is_key)
    tl.store(to_value, first, mask=is_value)
    tl.store(to_value + HALF, second, mask=is_value)


Split = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def qkv_rotary(
    qkv: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
    heads: int,
    kv_heads: int,
    dim: int,
    *,
    out: Split | None = None,
) -> Split:
    """Return (query, key, value), query and key rotated.

    Args:
        qkv: [tokens, (heads + 2 · kv_heads) · dim], rows of any stride.
        cos: [positions, dim / 2], contiguous, of qkv's dtype or fp32.
        sin: like cos.
        positions: int64 [tokens], each within cos; not checked, for that would wait for the GPU.
        heads: of the query.
        kv_heads: of key and value.
        dim: of a head, even.
        out: query [tokens, heads, dim], key and value [tokens, kv_heads, dim], contiguous; None:
            new tensors.

    Raises:
        KernelInputError: wrong shape, dtype or device.
    """
    check(heads > 0 and kv_heads > 0, f"heads are {heads} and {kv_heads}; both must be above 0")
    check(dim > 0 and dim % 2 == 0, f"dim is {dim}; an even number above 0 is needed")
    check_tensor("qkv", qkv, ("tokens", (heads + 2 * kv_heads) * dim), FLOATS)
    tokens, device = qkv.shape[0], qkv.device
    check_tensor("cos", cos, ("positions", dim // 2), {qkv.dtype, torch.float32}, device)
    check_tensor("sin", sin, tuple(cos.shape), (cos.dtype,), device)
    check(cos.is_contiguous() and sin.is_contiguous(), "cos or sin is not contiguous")
    check_tensor("positions", positions, (tokens,), (torch.int64,), device)
    if out is None:
        sizes = (heads, kv_heads, kv_heads)
        query, key, value = (qkv.new_empty(tokens, count, dim) for count in sizes)
    else:
        query, key, value = out
    parts = (("query", query, heads), ("key", key, kv_heads), ("value", value, kv_heads))
    for name, part, count in parts:
        check_tensor(name, part, (tokens, count, dim), (qkv.dtype,), device)
        check(part.is_contiguous(), f"{name} is not contiguous")
    if tokens:
        _qkv_rotary[(tokens, triton.cdiv(heads + 2 * kv_heads, _HEADS))](
            qkv,
            cos,
            sin,
            positions,
            query,
            key,
            value,
            heads,
            kv_heads,
            qkv.stride(0),
            HALF=dim // 2,
            HALF_BLOCK=triton.next_power_of_2(dim // 2),
            HEADS=_HEADS,
            num_warps=4,
        )
    return query, key, value


def rotary_tables(
    positions: int, dim: int, *, base: float = 10_000.0, device: torch.device | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (cos, sin) fp32 [positions, dim / 2] of angles position · base^(-2 i / dim)."""
    rates = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.arange(positions, dtype=torch.float64)[:, None] * rates
    return angles.cos().float().to(device), angles.sin().float().to(device)


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    """Make a split and rotation; axes tokens, heads, kv_heads and dim."""
    tokens, heads, kv_heads, dim = (shape[a] for a in ("tokens", "heads", "kv_heads", "dim"))
    kind, random = torch_dtype(dtype), torch.Generator(device).manual_seed(seed)
    width = (heads + 2 * kv_heads) * dim
    qkv = torch.randn(tokens, width, generator=random, device=device).to(kind)
    cos, sin = rotary_tables(4096, dim, device=device)
    positions = torch.randint(0, 4096, (tokens,), generator=random, device=device)
    query = poisoned((tokens, heads, dim), kind, device)
    key, value = (poisoned((tokens, kv_heads, dim), kind, device) for _ in range(2))
    out = (query, key, value)
    return Case(
        launch=partial(qkv_rotary, qkv, cos, sin, positions, heads, kv_heads, dim, out=out),
        outputs=out,
        oracle=lambda: reference(qkv, cos, sin, positions, heads, kv_heads),
        tolerance=tolerance(dtype),
        moved_bytes=float(2 * qkv.nbytes + tokens * (8 + 4 * dim)),
        flops=3.0 * tokens * (heads + kv_heads) * dim,
    )


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    return tuple(_spec(dim) for dim in (64, 128, 256))


def _spec(dim: int) -> CompileSpec:
    sixteen = dict.fromkeys(("qkv", "query", "key", "value"), "*bf16")
    pointers = {**sixteen, "cos": "*fp32", "sin": "*fp32", "positions": "*i64"}
    return CompileSpec(
        label=f"dim {dim}",
        function=_qkv_rotary,
        signature={**pointers, "heads": "i32", "kv_heads": "i32", "row_stride": "i32"},
        constexprs={"HALF": dim // 2, "HALF_BLOCK": dim // 2, "HEADS": _HEADS},
        aligned=frozenset({*pointers, "row_stride"}),
    )


QKV_ROTARY = Kernel(
    name="qkv_rotary",
    make_case=_make_case,
    shapes=(
        {"tokens": 1, "heads": 1, "kv_heads": 1, "dim": 2},
        {"tokens": 5, "heads": 7, "kv_heads": 1, "dim": 80},
        {"tokens": 3, "heads": 8, "kv_heads": 2, "dim": 128},
        {"tokens": 2, "heads": 4, "kv_heads": 4, "dim": 256},
    ),
    dtypes=("float16", "bfloat16", "float32"),
    interpreted=("float16", "float32"),
    compile_specs=_compile_specs,
    sources=(_qkv_rotary,),
)
