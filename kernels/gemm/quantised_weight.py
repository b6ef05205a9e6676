"""Weights in int8 or int4 with fp16 scales: how they are rounded and packed, on any device."""

import torch

from kernels.checks import check, check_tensor
from kernels.dtypes import FLOATS

GROUPS = (32, 64, 128)
"""Rows of k that may share a scale at 4 bits."""


def check_bits(bits: int, group: int | None, k: int) -> None:
    """Raise `KernelInputError` unless k rows can be held in groups of so many bits."""
    check(bits in (4, 8), f"bits is {bits}; 4 or 8 is needed")
    if bits == 8:
        check(group is None, f"group is {group}; at 8 bits a scale belongs to a column: None")
        return
    check(group in GROUPS, f"group is {group}; 32, 64 or 128 is needed at 4 bits")
    check(k % (group or 1) == 0, f"k is {k}; a multiple of the group {group} is needed")


def quantise_weight(
    weight: torch.Tensor, *, bits: int, group: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (packed, scales) of a weight, symmetric about zero.

    Args:
        weight: [k, n] of fp16, bf16 or fp32.
        bits: 8: packed is int8 [k, n], scales fp16 [n]. 4: packed is uint8 [k / 2, n], scales
            fp16 [k / group, n].
        group: at 4 bits 32, 64 or 128, dividing k. In each group, byte j holds row j in its low
            and row j + group / 2 in its high nibble, each the code + 8: so both halves of a byte
            meet whole runs of an activation's row.

    Raises:
        KernelInputError: wrong shape or dtype, or a group that does not divide k.
    """
    check_tensor("weight", weight, ("k", "n"), FLOATS)
    k, n = weight.shape
    check_bits(bits, group, k)
    rows = group or k
    grouped = weight.float().reshape(k // rows if rows else 1, rows, n)
    largest_code = 2 ** (bits - 1) - 1
    scales = (_largest(grouped) / largest_code).half()
    # The scale that is stored divides, so that its own rounding does no harm. It can be zero.
    divisor = torch.where(scales > 0, scales.float(), torch.ones_like(scales, dtype=torch.float32))
    codes = (grouped / divisor).round().clamp(-largest_code, largest_code)
    codes = torch.where(scales > 0, codes, torch.zeros_like(codes)).to(torch.int8)
    if group is None:
        return codes.reshape(k, n), scales.reshape(n)
    low, high = (codes + 8).to(torch.uint8).split(group // 2, dim=1)
    return (low | (high << 4)).reshape(k // 2, n), scales.reshape(k // group, n)


def _largest(grouped: torch.Tensor) -> torch.Tensor:
    """Return the largest magnitude of each group and column; of no rows, zero."""
    if grouped.shape[1] == 0:
        return grouped.new_zeros(grouped.shape[0], 1, grouped.shape[2])
    return grouped.abs().amax(dim=1, keepdim=True)
