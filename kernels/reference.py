"""Oracles: what each kernel must compute, in float64 and in the plainest way."""

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return x / sqrt(mean(x²) + eps) · weight over the last axis, in float64."""
    wide = x.double()
    return wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt() * weight.double()


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a · b in float64."""
    return a.double() @ b.double()


def matmul_fp8(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor
) -> torch.Tensor:
    """Return (a · scale_a) · (b · scale_b) in float64: scales of one, or of rows and columns."""
    return (a.double() * scale_a.double()[:, None]) @ (b.double() * scale_b.double())


def dequantise_weight(
    packed: torch.Tensor, scales: torch.Tensor, group: int | None
) -> torch.Tensor:
    """Return the weight [k, n] in float64: int8 by columns (group None), or int4 by groups of k."""
    if group is None:
        return packed.double() * scales.double()
    rows, n = packed.shape
    halves = packed.reshape(2 * rows // group, group // 2, n).to(torch.int16)
    codes = torch.cat([halves & 15, halves >> 4], dim=1) - 8
    return (codes.double() * scales.double()[:, None]).reshape(2 * rows, n)


def matmul_weight_only(
    a: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, group: int | None
) -> torch.Tensor:
    """Return a · dequantised weight in float64."""
    return a.double() @ dequantise_weight(packed, scales, group)


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Return (x - mean) / sqrt(variance + eps) · weight + bias over the last axis, in float64."""
    centred = x.double() - x.double().mean(-1, keepdim=True)
    deviation = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    return centred / deviation * weight.double() + bias.double()


def softmax(x: torch.Tensor, clamp: float | None = None) -> torch.Tensor:
    """Return the softmax over the last axis in float64, of scores within ±clamp."""
    scores = x.double() if clamp is None else x.double().clamp(-clamp, clamp)
    return scores.softmax(-1)


def softmax_saturation(
    x: torch.Tensor, clamp: float | None, *, subtract_max: bool, half: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (counts [rows, 4], flushed mass [rows]) as `kernels.softmax.Saturation` defines them.

    Rounding is that of the format; a late clamp isn't asked for here. Exponentials in fp32 are
    taken to be zero below half the least subnormal.
    """
    scores = x.double() if clamp is None else x.double().clamp(-clamp, clamp)
    rounded = scores.half() if half else scores.float()
    largest = rounded.amax(-1, keepdim=True) if subtract_max else torch.zeros_like(rounded[:, :1])
    exponentials = (rounded - largest).double().exp()
    stored = exponentials.half() if half else exponentials.float()
    finite, zero = x.isfinite(), x.isfinite() & (stored == 0)
    clamped = torch.zeros_like(finite) if clamp is None else x.double().abs() > clamp
    overflowed = finite & ~stored.isfinite()
    counts = [flags.sum(-1) for flags in (clamped, ~finite, overflowed, zero)]
    mass = scores.softmax(-1)
    return torch.stack(counts, dim=-1), torch.where(zero, mass, 0.0).sum(-1)


def silu_mul(gate_up: torch.Tensor) -> torch.Tensor:
    """Return silu(gate) · up of rows that hold both, in float64."""
    gate, up = gate_up.double().chunk(2, dim=-1)
    return gate * gate.sigmoid() * up


def qkv_rotary(
    qkv: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    positions: torch.Tensor,
    heads: int,
    kv_heads: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (query, key, value) in float64: lanes i and i + dim / 2 as one complex number each."""
    tokens, half = qkv.shape[0], cos.shape[1]
    wide = qkv.double().view(tokens, heads + 2 * kv_heads, 2 * half)
    turn = torch.complex(cos.double(), sin.double())[positions][:, None]
    turned = torch.complex(wide[..., :half], wide[..., half:]) * turn
    rotated = torch.cat([turned.real, turned.imag], dim=-1)
    last = heads + kv_heads
    return rotated[:, :heads], rotated[:, heads:last], wide[:, last:]
