"""Into how many parts decode attention cuts a context, and how the parts are merged."""

from dataclasses import dataclass
from functools import lru_cache

import torch
import triton
import triton.language as tl

from kernels.attention.chip import chip_of
from kernels.attention.tiles import split_tokens
from kernels.checks import check, check_tensor

MAX_SPLITS = 256
_TILE_BYTES = 16 * 1024
_WIDE_ROW_BYTES = 1024
"""From here on (256 elements of fp32) four warps have too few registers."""
_START_TILES = 1.0
"""What starting a program is taken to cost, in tiles read."""
_MERGE_TILES = 2.0
"""What merging is taken to cost."""
_WAVES = 4
"""Beyond so many waves of programs the last one hardly matters."""
_MERGED_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class DecodeConfig:
    """How a program of a decode kernel runs.

    Attributes:
        tile_tokens: tokens to a tile, a power of two.
        tiles_ahead: tiles held in shared memory: one at work, the others on their way.
        most_resident: programs that a multiprocessor's registers allow at once, as compiled.
    """

    tile_tokens: int
    tiles_ahead: int = 2
    warps: int = 4
    most_resident: int = 4

    @property
    def stages(self) -> int:
        """Triton's pipeline stages where a tile's address is known at once."""
        return self.tiles_ahead + 1

    @property
    def paged_stages(self) -> int:
        """Stages where a tile waits for its block table, which is read as far ahead again."""
        return 2 * self.tiles_ahead + 1

    def resident(self, row_bytes: int, shared_bytes: int) -> int:
        """Return how many programs a multiprocessor of so much shared memory holds at once."""
        each = 2 * self.tiles_ahead * self.tile_tokens * row_bytes + _OTHER_SHARED_BYTES
        return max(1, min(self.most_resident, shared_bytes // each))


_OTHER_SHARED_BYTES = 9 * 1024
"""Queries, weights, tables and what the hardware keeps: as compiled for dim 128, with margin."""


def decode_config(row_bytes: int) -> DecodeConfig:
    """Return the configuration for keys of so many bytes a token and KV head.

    16 KiB of keys to a tile: a multiprocessor then has more on its way than bandwidth times
    latency asks (4.8 TB/s · 0.8 us / 132 = 29 KB on an H200), with a tile's fixed costs spread.
    """
    tile_tokens = max(16, min(128, _TILE_BYTES // row_bytes))
    if row_bytes >= _WIDE_ROW_BYTES:
        return DecodeConfig(tile_tokens, warps=8, most_resident=2)
    return DecodeConfig(tile_tokens)


@lru_cache(maxsize=4096)
def choose_splits(programs: int, context_tokens: int, tile_tokens: int, slots: int) -> int:
    """Return into how many parts to cut each context, so that the programs fill the chip.

    Args:
        programs: sequences times KV heads.
        context_tokens: of the longest sequence.
        tile_tokens: tokens to a tile.
        slots: programs that the chip runs at once.

    A choice is taken to last as many waves of programs as there are, times what one reads and
    costs to start; of equal choices the fewest parts.
    """
    tiles = max(1, -(-context_tokens // tile_tokens))

    def cost(splits: int) -> float:
        waves = -(-programs * splits // slots)
        merge = _MERGE_TILES if splits > 1 else 0.0
        return waves * (-(-tiles // splits) + _START_TILES) + merge

    most = min(tiles, MAX_SPLITS, max(1, _WAVES * slots // max(programs, 1)))
    return min(range(1, most + 1), key=cost)


def splits_for(
    config: DecodeConfig, out: torch.Tensor, kv_heads: int, tokens: int, row_bytes: int
) -> int:
    """Return the number of splits that suits an output [seqs, heads, dim] on its device.

    Args:
        tokens: of the longest context.
        row_bytes: of a token's keys in one KV head.
    """
    chip = chip_of(out.device)
    slots = chip.sms * config.resident(row_bytes, chip.shared_bytes)
    return choose_splits(out.shape[0] * kv_heads, tokens, config.tile_tokens, slots)


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the parts of contexts cut into `splits` are kept; empty where there is one.

    Attributes:
        sums: float32 [seqs, heads, splits, dim]: values times weights, not normalised.
        stats: float32 [seqs, heads, splits, 2]: largest logit (base 2), sum of weights.
    """

    splits: int
    sums: torch.Tensor
    stats: torch.Tensor


def workspace_elements(seqs: int, heads: int, dim: int, splits: int) -> int:
    """Return how many float32 elements decode attention needs beside its output."""
    return seqs * heads * splits * (dim + 2) if splits > 1 else 0


def make_parts(out: torch.Tensor, splits: int, workspace: torch.Tensor | None) -> Parts:
    """Return memory for the parts of `out` [seqs, heads, dim].

    Raises:
        KernelInputError: as many splits aren't possible, or the workspace is too small for them.
    """
    check(1 <= splits <= MAX_SPLITS, f"num_splits is {splits}; 1 to {MAX_SPLITS} is needed")
    seqs, heads, dim = out.shape
    needed = workspace_elements(seqs, heads, dim, splits)
    if workspace is None:
        workspace = torch.empty(needed, dtype=torch.float32, device=out.device)
    check_tensor("workspace", workspace, ("elements",), (torch.float32,), out.device)
    check(
        workspace.numel() >= needed,
        f"workspace has {workspace.numel()} elements; {splits} splits need {needed}",
    )
    parts = seqs * heads * splits if splits > 1 else 0
    return Parts(splits, workspace[: parts * dim], workspace[parts * dim : parts * (dim + 2)])


@triton.jit
def _merge_splits(
    sums,
    stats,
    context_lens,
    out,
    out_seq_stride,
    out_head_stride,
    splits,
    TILE: tl.constexpr,
    DIM: tl.constexpr,
    MAX_PARTS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    head, seq = tl.program_id(0), tl.program_id(1).to(tl.int64)
    length = tl.load(context_lens + seq)
    # Parts beyond these were never written.
    used = tl.cdiv(length, split_tokens(length, splits, TILE))
    first = (seq * tl.num_programs(0) + head) * splits
    part = tl.arange(0, MAX_PARTS)
    top = tl.max(tl.load(stats + (first + part) * 2, mask=part < used, other=float("-inf")), axis=0)
    dims, some = tl.arange(0, DIM), tl.arange(0, AT_ONCE)
    summed, total = tl.zeros((DIM,), tl.float32), tl.zeros((AT_ONCE,), tl.float32)
    for begin in range(0, used, AT_ONCE):
        here = begin + some < used
        at = first + begin + some
        part_top = tl.load(stats + at * 2, mask=here, other=float("-inf"))
        share = tl.exp2(part_top - top)
        total += share * tl.load(stats + at * 2 + 1, mask=here, other=0.0)
        rows = tl.load(sums + at[:, None] * DIM + dims[None, :], mask=here[:, None], other=0.0)
        summed += tl.sum(rows * share[:, None], axis=0)
    weight = tl.sum(total, axis=0)
    result = summed / tl.where(weight > 0.0, weight, 1.0)
    to = out + seq * out_seq_stride + head * out_head_stride + dims
    tl.store(to, result.to(out.dtype.element_ty))


def merge_parts(
    parts: Parts, context_lens: torch.Tensor, out: torch.Tensor, tile_tokens: int
) -> None:
    """Write the merged parts to `out`; nothing where contexts weren't cut."""
    if parts.splits == 1:
        return
    seqs, heads, dim = out.shape
    _merge_splits[(heads, seqs)](
        parts.sums,
        parts.stats,
        context_lens,
        out,
        out.stride(0),
        out.stride(1),
        parts.splits,
        TILE=tile_tokens,
        DIM=dim,
        MAX_PARTS=max(16, triton.next_power_of_2(parts.splits)),
        AT_ONCE=_MERGED_AT_ONCE,
        num_warps=4,
    )
