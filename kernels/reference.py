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
    halves = packed.reshape(-1, group // 2, packed.shape[-1]).to(torch.int16)
    codes = torch.cat([halves & 15, halves >> 4], dim=1) - 8
    return (codes.double() * scales.double()[:, None]).reshape(-1, packed.shape[-1])


def matmul_weight_only(
    a: torch.Tensor, packed: torch.Tensor, scales: torch.Tensor, group: int | None
) -> torch.Tensor:
    """Return a · dequantised weight in float64."""
    return a.double() @ dequantise_weight(packed, scales, group)
