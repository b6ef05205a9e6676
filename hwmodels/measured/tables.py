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
"""

COLUMNS: dict[str, tuple[str, ...]] = {
    "gemm": ("m", "n", "k"),
    "prefill": ("heads", "kv_heads", "batch", "length"),
    "decode": ("heads", "kv_heads", "batch", "length"),
    "experts": ("hidden", "intermediate", "experts", "local", "topk", "tokens"),
    "nccl": ("ranks", "bytes"),
    "engine_all_reduce": ("ranks", "bytes"),
}


def kernel_of(table: str) -> str:
    """Return the kernel a table's name stands for: its first part."""
    return table.partition(".")[0]


def variants(tables: object, kernel: str) -> list[str]:
    """Return what follows `kernel.` in the names of `tables` (any iterable of names), sorted."""
    names = (str(name) for name in tables)  # type: ignore[attr-defined]
    return sorted(name.partition(".")[2] for name in names if kernel_of(name) == kernel)
