"""Attention from tables: one grid of (batch, length) for each pair of head counts."""

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hwmodels.attention import decode_cost, prefill_cost
from hwmodels.dtypes import KV_BYTES
from hwmodels.efficiency import FP8_KV_RATIO, DecodeFit, PrefillFit
from hwmodels.interpolate import log_interpolate
from hwmodels.kv_formats import priced_decode
from hwmodels.measured.fa2_decode import Fa2DecodeFit, fa2_decode_s
from hwmodels.measured.grid import Physics, ResidualGrid
from hwmodels.measured.heads import HeadShare, Pair, stand_ins
from hwmodels.measured.tables import variants
from hwmodels.ops import DecodeAttention, OpCost, PrefillAttention, Source
from hwmodels.profile import Table
from hwmodels.spec import GpuSpec

# A chunk that joins the kernel of another costs what one sequence adds to a batch: the slope
# between one sequence and this many.
_JOINED_BATCH = 16

# How far gaps follow the (batch, length) axes: prefill is smoother along the batch, decode along
# the length, on all three GPUs.
_TRUST = {"prefill": (0.7, 0.3), "decode": (0.1, 0.9)}


_EIGHT_BIT = ("fp8", "int8")


class _Heads:
    """The grids of one attention table, by pair of head counts."""

    def __init__(self, table: Table, trust: tuple[float, float]) -> None:
        self._table, self._trust = table, trust
        heads, kv_heads = table["heads"].astype(np.int64), table["kv_heads"].astype(np.int64)
        self._codes = heads * 2**16 + kv_heads
        codes = np.unique(self._codes).tolist()
        self.pairs: set[Pair] = {(code >> 16, code & 0xFFFF) for code in codes}
        self._grids: dict[Pair, ResidualGrid] = {}
        self._shares: dict[Pair, tuple[list[HeadShare], bool]] = {}

    def shares(self, pair: Pair) -> tuple[list[HeadShare], bool]:
        found = self._shares.get(pair)
        if found is None:
            found = self._shares[pair] = stand_ins(pair, self.pairs)
        return found

    def grid(self, pair: Pair, physics: Physics) -> ResidualGrid:
        grid = self._grids.get(pair)
        if grid is None:
            rows = self._codes == pair[0] * 2**16 + pair[1]
            columns = [self._table[name][rows] for name in ("batch", "length")]
            seconds = self._table["seconds"][rows]
            grid = self._grids[pair] = ResidualGrid(columns, seconds, physics, self._trust)
        return grid


class _Tables:
    """The tables of one attention kernel, by head and KV format."""

    def __init__(self, kernel: str, tables: Mapping[str, Table]) -> None:
        self._kernel, self._tables = kernel, tables
        self._known = variants(tables, kernel)
        self._heads: dict[str, _Heads] = {}

    def find(self, head: str, kv_dtype: str) -> tuple[str, bool] | None:
        """The variant to use, and whether it is the very one asked for.

        A missing KV format takes bf16's; a missing head dimension the nearest one's of full
        attention, since what a window saves is in the physics.
        """
        asked = f"{head}.{kv_dtype}"
        if asked in self._known:
            return asked, True
        if f"{head}.bf16" in self._known:
            return f"{head}.bf16", False
        dim = head.partition("w")[0]
        if not dim.isdigit():
            return None
        plain = [name for name in self._known if name.partition(".")[0].isdigit()]
        same = [name for name in plain if name.endswith(f".{kv_dtype}")] or plain
        if not same:
            return None
        return min(same, key=lambda name: abs(math.log(int(name.split(".")[0]) / int(dim)))), False

    def heads(self, variant: str) -> _Heads:
        found = self._heads.get(variant)
        if found is None:
            found = self._heads[variant] = _Heads(
                self._tables[f"{self._kernel}.{variant}"], _TRUST[self._kernel]
            )
        return found


def _head_name(qk_dim: int, v_dim: int, window: int | None = None) -> str:
    head = str(qk_dim) if qk_dim == v_dim else "mla"
    return head if window is None else f"{head}w{window}"


class MeasuredPrefill:
    """Prices prompt chunks.

    Tables hold whole prompts. A chunk over a cached prefix takes the ratio of the prompt of its
    own length; what the prefix adds is physics.
    """

    def __init__(self, tables: Mapping[str, Table], fit: PrefillFit, gpu: GpuSpec) -> None:
        self._fit, self._gpu = fit, gpu
        self._tables = _Tables("prefill", tables)
        self._ratios: dict[tuple[object, ...], tuple[float, Source]] = {}

    def cost(self, op: PrefillAttention) -> OpCost:
        """Return the cost of one chunk, all repeats."""
        base = prefill_cost(op, self._fit, self._gpu)
        alone = replace(op, joined=False) if op.joined else op
        one, source = self.batch_seconds(alone, 1)
        if op.kv_tokens != op.query_tokens:
            source = Source.EXTRAPOLATED if source is Source.EXTRAPOLATED else Source.PHYSICS
        if not op.joined:
            return OpCost(one * op.repeat, base.bound, source, base.kernels)
        many, _ = self.batch_seconds(alone, _JOINED_BATCH)
        added = max((many - one) / (_JOINED_BATCH - 1), 0.0)
        return OpCost(added * op.repeat, base.bound, source, base.kernels)

    def batch_seconds(self, op: PrefillAttention, batch: int) -> tuple[float, Source]:
        """Return the seconds of `batch` equal chunks in one kernel of one layer."""
        base = self._physics(op, batch)
        # The prompt of a chunk's own length is what tables know of it, whatever its prefix.
        key = (
            op.query_tokens, batch, op.heads, op.kv_heads, op.qk_dim, op.v_dim, op.kv_dtype,
            op.window,
        )  # fmt: skip
        found = self._ratios.get(key)
        if found is None:
            found = self._ratios[key] = self._ratio(op, batch)
        return base * found[0], found[1]

    def _ratio(self, op: PrefillAttention, batch: int) -> tuple[float, Source]:
        """Return measured over physical seconds of whole prompts, and how it was obtained."""
        found = self._tables.find(_head_name(op.qk_dim, op.v_dim, op.window), op.kv_dtype)
        if found is None:
            return 1.0, Source.EXTRAPOLATED
        variant, own = found
        heads = self._tables.heads(variant)
        shares, enclosed = heads.shares((op.heads, op.kv_heads))
        total, sources = 0.0, []
        shape = _shape_of(variant, op)
        for share in shares:
            grid = heads.grid(share.pair, self._form(shape, share.pair))
            ratio, source = grid.at(batch * share.batch_factor, op.query_tokens)
            total += share.weight * ratio
            sources.append(source)
        exact = enclosed and shares[0].pair == (op.heads, op.kv_heads)
        return math.exp(total), _worst(sources, exact, enclosed and own)

    def _physics(self, op: PrefillAttention, batch: float) -> float:
        # Equal sequences are to the form what more heads are.
        whole = replace(
            op, heads=round(op.heads * batch), kv_heads=round(op.kv_heads * batch), repeat=1
        )
        return prefill_cost(whole, self._fit, self._gpu).seconds

    def _form(self, shape: PrefillAttention, pair: Pair) -> Physics:
        def physics(batch: float, length: float) -> float:
            tokens = int(length)
            op = replace(
                shape, query_tokens=tokens, kv_tokens=tokens, heads=pair[0], kv_heads=pair[1]
            )
            return self._physics(op, batch)

        return physics


def _shape_of(variant: str, op: PrefillAttention) -> PrefillAttention:
    """`op` with the head dimension, window and KV format of the table that stands in for it."""
    head, _, kv_dtype = variant.partition(".")
    dim, _, window = head.partition("w")
    dims = (op.qk_dim, op.v_dim) if dim == "mla" else (int(dim), int(dim))
    return replace(
        op, qk_dim=dims[0], v_dim=dims[1], window=int(window) if window else None,
        kv_dtype=kv_dtype, joined=False, repeat=1,
    )  # fmt: skip


class MeasuredDecode:
    """Prices one-token queries.

    Public tables launch one kernel again and again, so KV that fits the L2 stays there. Other
    layers evict it in serving: there the ratio of physics with a cold to a warm L2 is put on top.

    Args:
        tensor: share of the tensor rate attention reaches (binds latent attention alone).
        fa2: parameters of FlashAttention-2's own form, where that kernel serves full attention.
        table_l2: "warm" if the tables were measured with KV left in the L2, else "cold".
        as_measured: price as the tables were measured; for judging against them.
    """

    def __init__(
        self,
        tables: Mapping[str, Table],
        fit: DecodeFit,
        gpu: GpuSpec,
        tensor: float,
        *,
        fa2: Fa2DecodeFit | None = None,
        table_l2: str = "warm",
        as_measured: bool = False,
    ) -> None:
        self._fit, self._gpu, self._tensor, self._fa2 = fit, gpu, tensor, fa2
        self._table_warm = table_l2 == "warm"
        self._warm = self._table_warm and as_measured
        self._tables = _Tables("decode", tables)

    def cost(self, op: DecodeAttention) -> OpCost:
        """Return the cost of a batch of one-token queries, all repeats."""
        base = decode_cost(op, self._fit, self._gpu, self._tensor, l2_warm=self._warm)
        asked, op = op, priced_decode(op)
        found = self._tables.find(_head_name(op.qk_dim, op.v_dim), op.kv_dtype)
        if op.seqs <= 0 or found is None:
            return base
        variant, own = found
        own = own and op is asked
        heads = self._tables.heads(variant)
        shares, enclosed = heads.shares((op.heads, op.kv_heads))
        total, sources, mean = 0.0, [], op.kv_tokens / op.seqs
        for share in shares:
            grid = heads.grid(share.pair, self._form(variant, op, share.pair))
            ratio, source = grid.at(op.seqs * share.batch_factor, mean)
            total += share.weight * ratio
            sources.append(source)
        exact = enclosed and shares[0].pair == (op.heads, op.kv_heads)
        source = _worst(sources, exact, enclosed and own)
        layer_s = self._layer_s(op, self._warm)
        if self._table_warm and not self._warm:
            # A fit may see no gain from the L2; a cold one is never the faster.
            layer_s = max(layer_s, self._layer_s(op, True))
        seconds = layer_s * op.repeat * math.exp(total)
        return OpCost(seconds, base.bound, source, base.kernels)

    def _layer_s(self, op: DecodeAttention, l2_warm: bool) -> float:
        """The form's seconds of one layer."""
        if self._fa2 is not None and op.qk_dim == op.v_dim:
            return self._fa2_s(op, self._fa2, l2_warm)
        whole = decode_cost(op, self._fit, self._gpu, self._tensor, l2_warm=l2_warm)
        return whole.seconds / op.repeat

    def _fa2_s(self, op: DecodeAttention, fit: Fa2DecodeFit, l2_warm: bool) -> float:
        """FlashAttention-2's form; over 8-bit KV times Hopper's ratio, the only one measured."""
        ratio = 1.0
        if op.kv_dtype in _EIGHT_BIT:
            op = replace(op, kv_bytes_per_token=2 * op.kv_bytes_per_token, kv_dtype="bf16")
            ratio = log_interpolate(op.kv_tokens * op.kv_bytes_per_token, FP8_KV_RATIO)
        return ratio * fa2_decode_s(op, fit, self._gpu, l2_warm=l2_warm)

    def _form(self, variant: str, op: DecodeAttention, pair: Pair) -> Physics:
        head, _, kv_dtype = variant.partition(".")
        dims = (op.qk_dim, op.v_dim) if head == "mla" else (int(head), int(head))
        elem = KV_BYTES.get(kv_dtype, 2.0)
        width = dims[0] if head == "mla" else 2 * pair[1] * dims[0]

        def physics(batch: float, length: float) -> float:
            shape = DecodeAttention(
                int(batch), int(batch * length), int(length), pair[0], pair[1], dims[0], dims[1],
                width * elem, kv_dtype,
            )  # fmt: skip
            return self._layer_s(shape, self._table_warm)

        return physics


_ORDER = (Source.TABLE, Source.INTERPOLATED, Source.PHYSICS, Source.EXTRAPOLATED)


def _worst(sources: list[Source], exact: bool, sound: bool) -> Source:
    if not sound:
        return Source.EXTRAPOLATED
    worst = max(sources, key=_ORDER.index)
    return worst if exact else max(worst, Source.INTERPOLATED, key=_ORDER.index)
