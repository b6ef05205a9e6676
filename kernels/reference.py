"""Oracles: what each kernel must compute, in float64 and in the plainest way."""

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return x / sqrt(mean(x²) + eps) · weight over the last axis, in float64."""
    wide = x.double()
    return wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt() * weight.double()


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a · b in float64."""
    return a.double() @ b.double()
