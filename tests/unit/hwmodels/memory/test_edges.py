"""Banks, alignment, tiles and waves: formulas against counting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwmodels.memory.access import column_words, spread
from hwmodels.memory.alignment import (
    alignment_class,
    copied_sectors,
    lines_per_request,
    sectors_per_request,
)
from hwmodels.memory.fits import MEMORY_FITS
from hwmodels.memory.shared_memory import (
    blocks_per_sm,
    conflict_degree,
    counted_degree,
    fits_block,
    tile_bytes,
)
from hwmodels.memory.tiles import pad_ratio, padded, tail_waste, tiles, wave_tail, waves


@given(st.integers(0, 5000))
def test_conflicts_by_formula_and_by_counting(stride):
    assert conflict_degree(stride) == counted_degree(column_words(stride))


@given(st.lists(st.integers(0, 4000), max_size=32))
def test_counting_is_the_busiest_bank(words):
    by_bank = [len({w for w in words if w % 32 == bank}) for bank in range(32)]
    assert counted_degree(np.array(words, dtype=np.int64)) == max(by_bank)


@given(st.integers(0, 600), st.integers(1, 600))
def test_lines_and_sectors_of_a_request(offset, size):
    start = np.array([offset])
    assert lines_per_request(offset, size) == spread(start, size, 128).size
    assert sectors_per_request(offset, size) == spread(start, size, 32).size


@given(st.integers(0, 600), st.integers(1, 400))
def test_a_shifted_copy_reads_at_most_one_sector_more(offset, requests):
    size = 128 * requests
    more = copied_sectors(size, offset) - copied_sectors(size, 0)
    assert more == (0 if offset % 32 == 0 else 1)


@given(st.integers(1, 5000), st.sampled_from([1, 2, 4]), st.integers(0, 64))
def test_a_class_divides_every_row(leading, element, base):
    width = alignment_class(leading, element, base)
    rows = base + leading * element * np.arange(20)
    assert not (rows % width).any()
    assert width == 16 or (rows % (2 * width)).any()


@given(st.integers(1, 10_000), st.integers(1, 300))
def test_pads_and_tails(length, tile):
    assert 0 <= padded(length, tile) - length < tile
    assert padded(length, tile) % tile == 0
    assert pad_ratio(length, tile) == pytest.approx((padded(length, tile) - length) / length)
    assert 0 <= tail_waste(length, tile) < 1


@given(st.integers(1, 10_000), st.integers(1, 200), st.integers(1, 4))
def test_the_last_wave_is_the_only_idle_one(num, sms, per_sm):
    slots = waves(num, sms, per_sm) * sms * per_sm
    assert slots - sms * per_sm < num <= slots
    assert wave_tail(num, sms, per_sm) == pytest.approx(1 - num / slots)


def test_tiles_of_a_product():
    assert tiles(256, 4096) == 64
    assert tiles(257, 4096) == 96
    assert wave_tail(0, 132) == 0


def test_a_tile_at_the_limit():
    limit = MEMORY_FITS["h200_sxm"].shared_bytes_per_block
    assert fits_block(limit, limit)
    assert not fits_block(limit + 1, limit)
    assert fits_block(1, None) is None
    assert tile_bytes(4, (128, 128, 64), 2) == 128 * 2**10


def test_blocks_of_an_sm():
    fit = MEMORY_FITS["h100_sxm"]
    limits = fit.shared_bytes_per_block, fit.shared_bytes_per_sm
    assert blocks_per_sm(fit.shared_bytes_per_sm / 2, *limits) == 2
    assert blocks_per_sm(fit.shared_bytes_per_block + 1, *limits) == 0
    assert blocks_per_sm(1, None, None) is None
