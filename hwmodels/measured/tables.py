"""Names and columns of the tables in a kernel profile.

A table's name says the kernel and what sets it apart, its columns the shape of each row. Its last
column is `seconds`: the median of one launch. Rows are sorted by shape and no shape repeats.

    gemm.<bf16|fp8|fp8_block|int8|int4>         m n k
    prefill.<head>.<bf16|fp8>                   heads kv_heads batch length
    decode.<head>.<bf16|fp8>                    heads kv_heads batch length
    experts.<bf16|fp8|fp8_block|int4|mxfp4>     hidden intermediate experts local topk tokens
    nccl.<all_reduce|all_gather|reduce_scatter|all_to_all>   ranks bytes
    engine_all_reduce                           ranks bytes

`<head>` is the head dimension, `mla` for latent attention, with `w<tokens>` appended for a sliding
window. `length` is the KV length: of prompts without a cached prefix in prefill. Heads, kv_heads,
intermediate and local (experts) are of one rank. `bytes` is the full buffer of the collective.
`fp8` says how KV is stored for attention, and weights and activations for products (`fp8`: one
scale a tensor or channel; `fp8_block`: a scale a 128 by 128 block). int8 and int4 are weight-only.

Our own measurements (`twin-calibrate measure`) have more, which no product or attention is priced
by: other kernels beside these, and probes of the memory hierarchy. `[0]` marks axes that may be 0.

    triton_gemm.<bf16|fp8>                      m n k
    prefill_cached.<head>.<bf16>                heads kv_heads batch query length
    decode_warm.<head>.<bf16>                   heads kv_heads batch length
    contiguous_decode.<head>.<bf16>             heads kv_heads batch length
    decode.<head>.<int8|int4>                   heads kv_heads batch length
    rms_norm.<bf16>, layer_norm.<bf16>          rows columns residual[0]
    softmax.<bf16>, silu_mul.<bf16>             rows columns
    qkv_rotary.<bf16>                           tokens heads kv_heads dim
    write_kv.<bf16>                             tokens kv_heads dim block_tokens
    quantise_kv.<fp8|int8|int4>                 tokens kv_heads dim block_tokens
    <probe>                                     the axes of `PROBES`
"""

COLUMNS: dict[str, tuple[str, ...]] = {
    "gemm": ("m", "n", "k"),
    "prefill": ("heads", "kv_heads", "batch", "length"),
    "decode": ("heads", "kv_heads", "batch", "length"),
    "experts": ("hidden", "intermediate", "experts", "local", "topk", "tokens"),
    "nccl": ("ranks", "bytes"),
    "engine_all_reduce": ("ranks", "bytes"),
    "triton_gemm": ("m", "n", "k"),
    "prefill_cached": ("heads", "kv_heads", "batch", "query", "length"),
    "decode_warm": ("heads", "kv_heads", "batch", "length"),
    "contiguous_decode": ("heads", "kv_heads", "batch", "length"),
    "rms_norm": ("rows", "columns", "residual"),
    "layer_norm": ("rows", "columns", "residual"),
    "softmax": ("rows", "columns"),
    "silu_mul": ("rows", "columns"),
    "qkv_rotary": ("tokens", "heads", "kv_heads", "dim"),
    "write_kv": ("tokens", "kv_heads", "dim", "block_tokens"),
    "quantise_kv": ("tokens", "kv_heads", "dim", "block_tokens"),
}

PROBES: dict[str, tuple[str, ...]] = {
    "stream": ("bytes", "mode"),
    "l2_sweep": ("bytes", "cold"),
    "chase": ("footprint_bytes", "stride_bytes", "random"),
    "gather": ("block_bytes", "footprint_bytes"),
    "offset_copy": ("offset_bytes", "bytes"),
    "lda": ("lda", "m", "n", "k", "library"),
    "tile_edge": ("m", "n", "k"),
    "shared_memory": ("stride_words",),
    "decode_order": ("block_tokens", "shuffled", "seqs", "context_tokens"),
    "decode_l2": ("seqs", "context_tokens", "cold"),
    "launch_gap": ("launches", "graph", "bytes"),
    "transfer": ("bytes", "pinned", "to_host", "fragments"),
    "first_shape": ("size",),
    "lifetime_race": ("bytes", "event"),
}
"""Probes of `kernels.probes`, and their axes."""

COLUMNS.update(PROBES)

FLAGS = frozenset({"residual", "random", "shuffled", "graph", "pinned", "to_host", "event", "cold",
                   "mode", "library"})  # fmt: skip
"""Axes that say which of a few kinds, counted from 0."""

FROM_ZERO = FLAGS | {"offset_bytes", "bytes"}
"""Axes whose least value is 0."""


def kernel_of(table: str) -> str:
    """Return the kernel a table's name stands for: its first part."""
    return table.partition(".")[0]


def variants(tables: object, kernel: str) -> list[str]:
    """Return what follows `kernel.` in the names of `tables` (any iterable of names), sorted."""
    names = (str(name) for name in tables)  # type: ignore[attr-defined]
    return sorted(name.partition(".")[2] for name in names if kernel_of(name) == kernel)
