"""Claims made about KV caches on GPUs, each beside the number that the models compute.

Nothing here is typed in as a result: every figure is worked out when it is asked for.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hwmodels.cost import cost_model_for
from hwmodels.gpus import GPUS
from hwmodels.memory.alignment import alignment_class, lines_per_request, sectors_per_request
from hwmodels.memory.dram import exposed_latency_s, head_traffic
from hwmodels.memory.fits import MEMORY_FITS
from hwmodels.memory.layout import KvLayout
from hwmodels.memory.shared_memory import conflict_degree, conflicts_per_cycle_limit
from hwmodels.memory.tiles import pad_ratio, padded, tail_waste, tiles
from hwmodels.memory.tlb import page_crossing_share, translation
from hwmodels.memory.units import PAGE_BYTES
from twin.llm.kv_cache import kv_bytes_per_token_per_gpu
from twin.llm.lowering import Precision, attention_ops, dense_ops
from twin.llm.models import MODELS
from twin.llm.op_sum import OpSum
from twin.llm.weights import weights_bytes
from twin.step import BatchShape

Verdict = Literal["impossible as stated", "other mechanism", "holds"]
_A100, _H100, _H200 = "a100_sxm", "h100_sxm", "h200_sxm"
_16_BITS = 2
_KIB, _GB = 2**10, 1e9


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim.

    Attributes:
        id: of the failure mode it is about.
        claimed: what is said.
        computed: what the models say.
        verdict: how the two stand to each other.
    """

    id: str
    claimed: str
    computed: str
    verdict: Verdict

    def as_dict(self) -> dict[str, str]:
        """Return plain data."""
        return {
            "id": self.id,
            "claimed": self.claimed,
            "computed": self.computed,
            "verdict": self.verdict,
        }


def judged_claims() -> list[Claim]:
    """Return every claim with its number, computed now."""
    return [Claim(ident, claimed, *compute()) for ident, claimed, compute in _CLAIMS]


Answer = tuple[str, Verdict]


def _offset() -> Answer:
    crossing = page_crossing_share(128, PAGE_BYTES)
    lines = lines_per_request(0), lines_per_request(64)
    sectors = sectors_per_request(0), sectors_per_request(64)
    computed = (
        f"one access in {1 / crossing:,.0f} crosses a page of 2 MiB; lines a request "
        f"{lines[0]} -> {lines[1]}, sectors {sectors[0]} -> {sectors[1]}"
    )
    return computed, "holds" if crossing == 1 else "impossible as stated"


def _layout() -> Answer:
    """Llama-70B at TP 8: one KV head, blocks of 16 tokens, all of a pool of 100 GB read."""
    gpu, fit = GPUS[_H200], MEMORY_FITS[_H200]
    one = KvLayout(16, _16_BITS, 1, 128, 80, 1, order="scattered")
    base = replace(one, num_blocks=int(100 * _GB // one.block_bytes))
    read_s = base.num_blocks * base.layer_block_bytes / (fit.stream_bytes_per_s or math.inf)
    found = []
    for layout in (base, replace(base, pools="cross_layer")):
        added = [
            translation(layout, layout.num_blocks, known, gpu.boost_hz).added_s(read_s)
            for known in (fit, *fit.extremes())
        ]
        found.append([1e6 * seconds for seconds in added])
    (per_layer, *_), (cross, least, most) = found
    computed = (
        f"100 GB on {_H200}, a layer read in {1e6 * read_s:.0f} us: {per_layer:.0f} us more with a "
        f"tensor a layer, {cross:.0f} us ({least:.0f} to {most:.0f}, unmeasured) across layers"
    )
    return computed, "other mechanism" if cross > per_layer else "impossible as stated"


def _line_use() -> Answer:
    lengths = (512, 397, 601)
    shares = [head_traffic(KvLayout(n, _16_BITS, 8, 128, 1, 1)).sector_efficiency for n in lengths]
    computed = "useful share of sectors at " + ", ".join(
        f"{n}: {100 * share:.0f} %" for n, share in zip(lengths, shares, strict=True)
    )
    return computed, "holds" if min(shares) < 1 else "impossible as stated"


def _fragmentation() -> Answer:
    ranges = ((1, 256), (257, 512), (513, 1024))
    waste = []
    for low, high in ranges:
        lengths = np.arange(low, high + 1)
        held = -(-lengths // 16) * 16
        waste.append(100 * float((held - lengths).sum() / held.sum()))
    computed = "empty share of 16-token blocks: " + ", ".join(
        f"{low}-{high}: {w:.1f} %" for (low, high), w in zip(ranges, waste, strict=True)
    )
    return computed, "holds" if waste == sorted(waste) else "impossible as stated"


def _tile_pad() -> Answer:
    computed = ", ".join(
        f"{n} -> {padded(n)} (+{100 * pad_ratio(n):.1f} % in tiles of 128, "
        f"{100 * tail_waste(n, 16):.2f} % of blocks empty)"
        for n in (397, 601)
    )
    return computed, "other mechanism"


def _stalls() -> Answer:
    parts = [
        f"{name}: {fit.dram_cycles:.0f} cycles "
        f"({1e9 * exposed_latency_s(fit.dram_cycles, 1, GPUS[name].boost_hz):.0f} ns), "
        f"{fit.dram_cycles / 16:.0f} with 16 in flight"
        for name in (_A100, _H100)
        if (fit := MEMORY_FITS[name]).dram_cycles is not None
    ]
    lines = lines_per_request(128)
    computed = f"an offset of 128 B: {lines} line a request; one exposed load, {'; '.join(parts)}"
    return computed, "other mechanism" if lines == lines_per_request(0) else "holds"


def _tile_fits() -> Answer:
    parts, all_fit = [], True
    for gpu, rows, columns in ((_A100, 512, 128), (_H100, 1024, 256)):
        limit = MEMORY_FITS[gpu].shared_bytes_per_block or 0
        size = rows * columns * _16_BITS
        both = 2 * size
        all_fit &= both <= limit
        parts.append(
            f"{rows}x{columns} in 16 bits {size // _KIB} KiB (keys and values {both // _KIB}) "
            f"of {limit // _KIB} on {gpu}"
        )
    return "; ".join(parts), "holds" if all_fit else "impossible as stated"


def _over_scan() -> Answer:
    """A step of 32 sequences of Llama-2-7B on A100, attention over 64 and over 1,024 tokens."""
    arch, model, seqs = MODELS["llama-2-7b"], cost_model_for(_A100), 32
    precision = Precision()

    def attention_s(length: int) -> float:
        shape = BatchShape((), seqs, seqs * length, length, seqs)
        return OpSum().add(model, attention_ops(arch, precision, 1, shape)).seconds

    rest_s = OpSum().add(model, dense_ops(arch, precision, 1, seqs, seqs)).seconds
    true_s, padded_s = attention_s(64), attention_s(1024)
    step = (rest_s + padded_s) / (rest_s + true_s)
    computed = (
        f"{1024 // 64}x the KV read, {padded_s / true_s:.1f}x attention, {step:.2f}x the step "
        f"(attention is {100 * true_s / (rest_s + true_s):.0f} % of it; 32 sequences, {_A100})"
    )
    return computed, "other mechanism"


def _reservation() -> Answer:
    claimed = 12.8e9 / 2048
    parts = []
    for name in ("llama-2-7b", "llama-2-70b"):
        token = kv_bytes_per_token_per_gpu(MODELS[name])
        parts.append(f"{name} {token / 1e6:.3f} MB a token ({claimed / token:.0f} sequences)")
    computed = f"{claimed / 1e6:.2f} MB a token is a batch: " + ", ".join(parts)
    return computed, "other mechanism"


def _contiguous() -> Answer:
    arch = MODELS["llama-2-7b"]
    weights, kv = weights_bytes(arch), 4 * 32_768 * kv_bytes_per_token_per_gpu(arch)
    floors = {g: 1e3 * (weights + kv) / GPUS[g].hbm_bytes_per_s for g in (_A100, _H100)}
    computed = f"weights {weights / _GB:.1f} GB and KV {kv / _GB:.1f} GB: at least " + ", ".join(
        f"{ms:.1f} ms on {gpu}" for gpu, ms in floors.items()
    )
    return computed, "holds" if min(floors.values()) <= 9.2 else "impossible as stated"


def _exponent() -> Answer:
    limit = math.log(float(np.finfo(np.float16).max))
    computed = f"ln {float(np.finfo(np.float16).max):.0f} = {limit:.2f}; after max subtraction "
    return computed + "every exponent is at most 0", (
        "holds" if limit >= 11.5 else "impossible as stated"
    )


def _conflicts() -> Answer:
    gpu, fit = GPUS[_H100], MEMORY_FITS[_H100]
    most = conflicts_per_cycle_limit(gpu.num_sms)
    size = 1025 * 128 * 4
    more = tiles(1025, 128) / tiles(1024, 128) - 1
    computed = (
        f"at most {most:,} a cycle on {_H100}; rows {conflict_degree(1)}-way, columns of 128 "
        f"words {conflict_degree(128)}-way, of 129 {conflict_degree(129)}-way; the array "
        f"{size / 1e3:.0f} KB of {(fit.shared_bytes_per_block or 0) // _KIB} KiB; 1025 rows "
        f"{100 * more:.1f} % more tiles"
    )
    return computed, "impossible as stated" if most < 17_800 else "holds"


def _alignment() -> Answer:
    speeds = MEMORY_FITS[_H100].alignment_speed
    widths = {ld: alignment_class(ld, _16_BITS) for ld in (1024, 1025, 1032)}
    slower = speeds[widths[1024]] / speeds[widths[1025]]
    fast = next(n for n in range(1, 65) if alignment_class(n, _16_BITS) == 16)
    computed = "; ".join(f"{ld}: {width} bytes" for ld, width in widths.items())
    computed += f"; {slower:.1f}x slower (prior); whole vectors at every {fast}th"
    return computed, "other mechanism" if fast != 32 else "holds"


_CLAIMS: tuple[tuple[str, str, Callable[[], Any]], ...] = (
    ("F06", "64 B of offset make every 128 B access look up two pages", _offset),
    ("F06", "KV layout multiplies TLB misses by 3.9, latency by 2.3", _layout),
    ("F07", "lengths 512, 397, 601: 32 % of lines hold < 64 B of use", _line_use),
    ("F07", "fragmentation grows with length: 4.1, 17.2, 52.9 %", _fragmentation),
    ("F07", "jumps of length cost L2 hits (-18.7 %)", _tile_pad),
    ("F09", "128 B of misalignment stall 842 cycles, 64 B 429", _stalls),
    ("F12", "best KV tiles 512x128 (A100), 1024x256 (H100)", _tile_fits),
    ("F26", "64 tokens scanned as 1024: 16x work, P99 +142 %", _over_scan),
    ("F29", "2048 tokens reserve 12.8 GB", _reservation),
    ("F31", "7B, 32K, batch 4: 18.7 -> 9.2 ms a token, 6.1 GB", _contiguous),
    ("F36", "exp overflows above 11.5; clip at 11.0 (numbers, not memory)", _exponent),
    ("F37", "1025x128 FP32 rows: 17.8K bank conflicts a cycle", _conflicts),
    ("F38", "lda 1024 -> 1025: 62.1 -> 21.4 TFLOPS (2.9x); rule lda % 32", _alignment),
)
