"""Tiles and waves: what is computed beyond what was asked for."""

import math

TILE = 128


def padded(length: int, tile: int = TILE) -> int:
    """Return the length that whole tiles cover."""
    return -(-length // tile) * tile


def pad_ratio(length: int, tile: int = TILE) -> float:
    """Return what tiles cover beyond the length, as a share of the length."""
    return padded(length, tile) / length - 1


def tail_waste(length: int, block_tokens: int) -> float:
    """Return the empty share of the blocks that a sequence holds."""
    held = padded(length, block_tokens)
    return (held - length) / held


def tiles(m: int, n: int, tile_m: int = TILE, tile_n: int = TILE) -> int:
    """Return the tiles of an m × n product."""
    return math.ceil(m / tile_m) * math.ceil(n / tile_n)


def waves(num_tiles: int, num_sms: int, per_sm: int = 1) -> int:
    """Return the rounds in which the SMs take the tiles."""
    return math.ceil(num_tiles / (num_sms * per_sm))


def wave_tail(num_tiles: int, num_sms: int, per_sm: int = 1) -> float:
    """Return the idle share of all rounds: the last is seldom full."""
    slots = waves(num_tiles, num_sms, per_sm) * num_sms * per_sm
    return 1 - num_tiles / slots if slots else 0.0
