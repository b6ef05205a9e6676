import statistics

import pytest

from hwmodels.attention import TILE, causal_tiles, decode_cost
from hwmodels.efficiency import EFFICIENCIES
from hwmodels.gpus import GPUS
from hwmodels.ops import Bound, DecodeAttention, PrefillAttention, Source
from hwmodels.roofline import RooflineCostModel

H100, A100 = RooflineCostModel(GPUS["h100_sxm"]), RooflineCostModel(GPUS["a100_sxm"])
BATCHES = (1, 16, 64, 128, 256, 512, 1024, 2048)
# Microseconds measured on H100, 32 heads, 8 KV heads, head_dim 128, KV warm in L2.
ANCHORS_US = {
    2: (11.8, 12.7, 24.3, 38.0, 66.5, 126.5, 214.9, 442.6),
    128: (11.7, 13.0, 26.1, 52.5, 87.9, 150.9, 278.0, 486.0),
    1024: (13.6, 36.1, 119.4, 190.5, 364.4),
    8192: (19.8, 210.9, 688.2),
    32768: (67.7, 692.0),
}


def decode(seqs, context, kv_dtype="bf16"):
    kv_bytes = 4096.0 if kv_dtype == "bf16" else 2048.0
    return DecodeAttention(seqs, seqs * context, context, 32, 8, 128, 128, kv_bytes, kv_dtype)


def warm_us(op):
    fits = EFFICIENCIES["h100_sxm"]
    gpu = GPUS["h100_sxm"]
    return decode_cost(op, fits.decode, gpu, fits.prefill.tensor, l2_warm=True).seconds * 1e6


def test_decode_anchors_within_the_form_below_batch_1024():
    """The form errs 6.1 % (median) and 16.5 % (P90) over its table; the anchors are its corners."""
    errors = [
        abs(warm_us(decode(seqs, context)) / measured - 1)
        for context, row in ANCHORS_US.items()
        for seqs, measured in zip(BATCHES, row, strict=False)
        if seqs < 1024
    ]
    assert len(errors) == 22
    assert statistics.median(errors) < 0.10
    assert statistics.quantiles(errors, n=10)[-1] < 0.165
    assert max(errors) < 0.25


def test_many_short_sequences_are_bound_by_thread_blocks():
    """442.6 us measured; a bandwidth roofline says 27."""
    cost = H100.cost(decode(2048, 2))
    assert cost.seconds * 1e6 == pytest.approx(442.6, rel=0.061)
    assert cost.bound is Bound.LAUNCH


@pytest.mark.parametrize(("cost_model", "median_tb_s"), [(H100, 2.58), (A100, 1.29)])
def test_long_kv_streams_at_the_measured_median(cost_model, median_tb_s):
    """Medians over rows above 100 MB of KV."""
    rates = [
        seqs * context * 4096 / cost_model.cost(decode(seqs, context)).seconds / 1e12
        for seqs, context in [(64, 1024), (16, 8192), (64, 8192), (128, 1024), (256, 1024)]
    ]
    assert statistics.median(rates) == pytest.approx(median_tb_s, rel=0.12)


def test_serving_prices_kv_cold():
    resident = decode(16, 512)  # 33.5 MB: inside the L2
    assert H100.cost(resident).seconds * 1e6 > warm_us(resident)
    streamed = decode(64, 8192)
    assert H100.cost(streamed).seconds * 1e6 == pytest.approx(warm_us(streamed))


@pytest.mark.parametrize(
    ("seqs", "context", "low", "high"),
    # Ranges P10-P90 of the measured ratio, by bytes of bf16 KV: below 1 MB, 1-20, 20-100,
    # 100-400 and above 400 MB.
    [(1, 128, 1.09, 1.17), (4, 256, 1.05, 1.18), (16, 700, 0.71, 1.11), (64, 800, 0.65, 1.03),
     (64, 4096, 0.55, 0.80)],
)  # fmt: skip
def test_fp8_kv_costs_time_when_small_and_saves_when_large(seqs, context, low, high):
    ratio = (
        H100.cost(decode(seqs, context, "fp8")).seconds / H100.cost(decode(seqs, context)).seconds
    )
    assert low < ratio < high


def test_latent_attention_with_many_heads_is_not_free_compute():
    latent = DecodeAttention(64, 64 * 8192, 8192, 128, 1, 576, 512, 1152.0)
    flops = 2 * 64 * 8192 * 128 * (576 + 512)
    cost = RooflineCostModel(GPUS["h200_sxm"]).cost(latent)
    assert cost.seconds > flops / GPUS["h200_sxm"].flops_per_s["bf16"]
    assert cost.bound is Bound.COMPUTE


def brute_tiles(query, kv, window):
    """Count by walking the rows of tiles."""
    context, total, row_tiles = -(-(kv - query) // TILE), 0, 0
    rows = -(-query // TILE)
    for row in range(1, rows + 1):
        row_tiles = context + row if row < rows else -(-kv // TILE)
        if window is not None:
            row_tiles = min(row_tiles, -(-window // TILE) + 1)
        total += row_tiles
    return total, row_tiles


@pytest.mark.parametrize("window", [None, 128, 1024, 100])
@pytest.mark.parametrize(
    ("query", "kv"), [(1, 1), (128, 128), (129, 129), (512, 2048), (2048, 2048), (100, 5000),
                      (700, 1029), (4096, 4097)]
)  # fmt: skip
def test_causal_tiles_equal_a_walk_over_rows(query, kv, window):
    assert causal_tiles(query, kv, window) == brute_tiles(query, kv, window)


def test_prefill_reaches_the_measured_rate():
    """676 TFLOPS at best on H100, counting the causal half."""
    size = 32768
    flops = 2 * size * size / 2 * 32 * 256
    seconds = H100.cost(PrefillAttention(size, size, 32, 8, 128, 128)).seconds
    assert flops / seconds / 1e12 == pytest.approx(676, rel=0.074)


def test_prefill_equals_the_additive_form_by_hand():
    fit, gpu = EFFICIENCIES["h100_sxm"].prefill, GPUS["h100_sxm"]
    blocks = 2048 // 128
    tiles = 32 * 4 * 128 * 128 * 128 * blocks * (blocks + 1) / 2
    expected = (
        11.1e-6
        + 2 * 2048 * (64 + 16) * 128 / 1.78e12
        + 2 * 2048 * 4 * 8 * 128 / 1.92e12
        + tiles / (fit.tensor * gpu.flops_per_s["bf16"])
    )
    cost = H100.cost(PrefillAttention(2048, 2048, 32, 8, 128, 128))
    assert cost.seconds == pytest.approx(expected)
    assert cost.source is Source.PHYSICS


def test_a_joined_chunk_pays_no_start_up():
    alone = H100.cost(PrefillAttention(256, 1024, 32, 8, 128, 128, repeat=2))
    joined = H100.cost(PrefillAttention(256, 1024, 32, 8, 128, 128, repeat=2, joined=True))
    assert alone.seconds - joined.seconds == pytest.approx(2 * 11.1e-6)
    assert (alone.kernels, joined.kernels) == (2, 0)
    assert alone.source is Source.EXTRAPOLATED  # cached context wasn't in the tables


def test_a_window_caps_prefill_and_narrow_heads_are_slower():
    full = H100.cost(PrefillAttention(8192, 8192, 32, 8, 128, 128)).seconds
    assert H100.cost(PrefillAttention(8192, 8192, 32, 8, 128, 128, window=1024)).seconds < full / 2
    narrow = H100.cost(PrefillAttention(8192, 8192, 64, 16, 64, 64)).seconds
    assert narrow > 1.2 * full
