"""Decode attention over a paged KV cache in fp8, int8 or int4, widened inside the kernel."""

import torch
import triton

from kernels.attention.eight_bit_decode import _eight_bit_decode
from kernels.attention.four_bit_decode import _four_bit_decode
from kernels.attention.inputs import (
    check_block_tokens,
    check_lengths,
    check_query,
    check_tables,
)
from kernels.attention.splitting import (
    DecodeConfig,
    make_parts,
    merge_parts,
    splits_for,
)
from kernels.attention.tiles import LOG2_E
from kernels.checks import check, check_tensor
from kernels.kv.quantised import QuantisedKv, check_fp8, check_same_format

_QUERIES = (torch.float16, torch.bfloat16)


def quantised_decode(
    query: torch.Tensor,
    key_cache: QuantisedKv,
    value_cache: QuantisedKv,
    block_tables: torch.Tensor,
    context_lens: torch.Tensor,
    *,
    scale: float | None = None,
    max_context_tokens: int | None = None,
    num_splits: int | None = None,
    out: torch.Tensor | None = None,
    workspace: torch.Tensor | None = None,
    config: DecodeConfig | None = None,
) -> torch.Tensor:
    """Return attention of one query token of each sequence over its cached tokens.

    Args:
        query: [seqs, heads, dim] of fp16 or bf16; dim 64, 128 or 256.
        key_cache: codes and scales of keys; fp8 needs compute capability 8.9.
        value_cache: of values, of the same format and shape.
        block_tables: int32 [seqs, max_blocks], as for `paged_decode`, like the rest.
        context_lens: int32 [seqs].
        scale: of logits; None: 1 / sqrt(dim).
        max_context_tokens: bound on context_lens; None: what the block tables can hold.
        num_splits: into how many parts each context is cut; None: as fills the chip.
        out: [seqs, heads, dim]; None: a new tensor.
        workspace: float32, `splitting.workspace_elements` long; None: a new tensor if needed.
        config: tile, warps and tiles ahead; None: by the bytes of a token.

    Raises:
        KernelInputError: wrong shape, dtype, device or number.
    """
    check_tensor("query", query, ("seqs", "heads", key_cache.dim), _QUERIES)
    _, block_tokens, kv_heads, _ = key_cache.codes.shape
    out = check_query(query, kv_heads, out)
    seqs, heads, dim = query.shape
    check_same_format(key_cache, value_cache)
    check_fp8(key_cache)
    check(
        key_cache.codes.device == query.device,
        f"key_cache is on {key_cache.codes.device}; it must be on {query.device} like the rest",
    )
    check_block_tokens(block_tokens)
    check_tables(block_tables, seqs, query.device)
    check_lengths(context_lens, seqs, query.device)
    if seqs == 0 or heads == 0:
        return out
    config = config or quantised_config(dim)
    longest = max_context_tokens or block_tables.shape[1] * block_tokens
    splits = (
        num_splits
        if num_splits is not None
        else splits_for(config, out, kv_heads, longest, key_cache.row_bytes)
    )
    parts = make_parts(out, splits, workspace)
    pointers = (block_tables, context_lens, out, parts.sums, parts.stats)
    number = (dim**-0.5 if scale is None else scale) * LOG2_E
    launch = _launch_8bit if key_cache.group is None else _launch_4bit
    launch(query, (key_cache, value_cache), pointers, number, splits, config)
    merge_parts(parts, context_lens, out, config.tile_tokens)
    return out


_Pointers = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""Block tables, context lengths, out, sums and stats of parts."""


def _launch_8bit(
    query: torch.Tensor,
    caches: tuple[QuantisedKv, QuantisedKv],
    pointers: _Pointers,
    scale: float,
    splits: int,
    config: DecodeConfig,
) -> None:
    key, value = caches
    tables, out = pointers[0], pointers[2]
    _eight_bit_decode[_grid(query, key, splits)](
        query,
        key.codes,
        value.codes,
        key.scales,
        value.scales,
        *pointers,
        scale,
        *query.stride()[:2],
        key.head_stride,
        tables.stride(0),
        *out.stride()[:2],
        PER_TOKEN=key.granularity == "token",
        **_sizes(query, key, splits, config),
        num_warps=config.warps,
        num_stages=config.paged_stages,
    )


def _launch_4bit(
    query: torch.Tensor,
    caches: tuple[QuantisedKv, QuantisedKv],
    pointers: _Pointers,
    scale: float,
    splits: int,
    config: DecodeConfig,
) -> None:
    key, value = caches
    tables, out = pointers[0], pointers[2]
    _four_bit_decode[_grid(query, key, splits)](
        query,
        key.codes,
        value.codes,
        # A scale and a lowest value in one word.
        key.scales.view(torch.int32),
        value.scales.view(torch.int32),
        *pointers,
        scale,
        *query.stride()[:2],
        tables.stride(0),
        *out.stride()[:2],
        CODES=key.group,
        **_sizes(query, key, splits, config),
        num_warps=config.warps,
        num_stages=config.paged_stages,
    )


def _grid(query: torch.Tensor, cache: QuantisedKv, splits: int) -> tuple[int, int, int]:
    return cache.codes.shape[2], splits, query.shape[0]


def _sizes(
    query: torch.Tensor, cache: QuantisedKv, splits: int, config: DecodeConfig
) -> dict[str, int | bool]:
    group = query.shape[1] // cache.codes.shape[2]
    return {
        "GROUP": group,
        "ROWS": max(16, triton.next_power_of_2(group)),
        "DIM": query.shape[2],
        "BLOCK": cache.codes.shape[1],
        "TILE": config.tile_tokens,
        "SPLIT": splits > 1,
    }


def quantised_config(dim: int) -> DecodeConfig:
    """Return the configuration for codes of a head's dim, in any format.

    As compiled: one that doesn't spill, since widened tiles are held in registers. Tiles take few
    bytes, so more of them are on their way.
    """
    return DecodeConfig(min(128, 8192 // dim), tiles_ahead=3, most_resident=2)
