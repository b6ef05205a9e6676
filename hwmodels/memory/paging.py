"""What reading KV through a block table costs beside reading it in one piece: κ."""

from hwmodels.memory.fits import MemoryFit

ENTRY_BYTES = 4

KAPPA_MOST = 1.3
"""Slowest paged kernels against contiguous ones: the first ones were 20-26 % slower than
FasterTransformer's; kernels of today 0-5 %."""


def table_bytes(tokens: float, block_tokens: int) -> float:
    """Return the block-table bytes one sequence's kernel reads."""
    return -(-tokens // block_tokens) * ENTRY_BYTES


def least_kappa(
    contiguous_s: float, entries: float, fit: MemoryFit, clock_hz: float
) -> float | None:
    """Return the least factor of paging on a kernel; None: unknown.

    The table is read once, and the first block of each thread block waits for its entry: one
    L2 hit that nothing hides.

    Args:
        contiguous_s: seconds of the kernel over KV in one piece.
        entries: block-table entries of all sequences.
        fit: constants of the GPU.
        clock_hz: of its SMs.
    """
    if fit.l2_near_cycles is None or fit.l2_bytes_per_s is None or contiguous_s <= 0:
        return None
    read_s = entries * ENTRY_BYTES / fit.l2_bytes_per_s
    return 1 + (read_s + fit.l2_near_cycles / clock_hz) / contiguous_s
