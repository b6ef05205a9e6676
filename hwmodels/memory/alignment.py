"""Alignment: classes of a leading dimension, and what a shifted base address costs."""

from collections.abc import Mapping

from hwmodels.memory.units import LINE_BYTES, REQUEST_BYTES, SECTOR_BYTES

CLASSES = (16, 8, 4, 2)
"""Widths of a vector load, bytes; 16 is also what TMA asks for."""


def alignment_class(leading_dimension: int, element_bytes: int, base_bytes: int = 0) -> int:
    """Return the widest load that every row of a matrix allows: 16, 8, 4, 2 or 1 bytes.

    Args:
        leading_dimension: elements from one row to the next.
        element_bytes: of one.
        base_bytes: where the first row begins.
    """
    row = leading_dimension * element_bytes
    return next((width for width in CLASSES if not row % width and not base_bytes % width), 1)


def alignment_speed(width: int, speeds: Mapping[int, float]) -> float | None:
    """Return the speed of a product by its class, 1 for whole vectors; None: unknown."""
    return speeds.get(width)


def lines_per_request(offset_bytes: int, request_bytes: int = REQUEST_BYTES) -> int:
    """Return the cache lines that one warp's contiguous request touches."""
    return (offset_bytes % LINE_BYTES + request_bytes - 1) // LINE_BYTES + 1


def sectors_per_request(offset_bytes: int, request_bytes: int = REQUEST_BYTES) -> int:
    """Return the sectors that one warp's contiguous request touches.

    Bases on a sector's border leave it as it is; others touch one more, which the next request
    of a copy shares: DRAM moves no more for it.
    """
    return (offset_bytes % SECTOR_BYTES + request_bytes - 1) // SECTOR_BYTES + 1


def copied_sectors(num_bytes: int, offset_bytes: int) -> int:
    """Return the sectors that a whole copy reads, from that far into a line."""
    return (offset_bytes % SECTOR_BYTES + num_bytes - 1) // SECTOR_BYTES + 1
