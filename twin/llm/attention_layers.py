"""Attention operations of one rank: full, sliding-window and latent layers."""

from hwmodels.dtypes import KV_BYTES, KV_SCALE_BYTES
from hwmodels.ops import DecodeAttention, Op, PrefillAttention
from twin.llm.arch import ModelArch


class AttentionLayers:
    """The attention of a network on one rank of `tp`, ready to be lowered many times.

    KV heads are replicated when `tp` exceeds them. Latent attention (MLA) prefills with expanded
    heads and decodes absorbed: all query heads share the one latent, which every rank holds.
    """

    def __init__(self, arch: ModelArch, kv_dtype: str, tp: int) -> None:
        self.heads = -(-arch.num_heads // tp)
        self.kv_heads = max(1, -(-arch.num_kv_heads // tp))
        self.kv_dtype = kv_dtype
        elem = KV_BYTES[kv_dtype]
        scale_bytes = KV_SCALE_BYTES.get(kv_dtype, 0)
        mla = arch.mla
        if mla is None:
            self.prefill_kv_heads = self.decode_kv_heads = self.kv_heads
            self.prefill_dims = self.decode_dims = (arch.head_dim, arch.head_dim)
            self.kv_bytes_per_token = 2 * self.kv_heads * (arch.head_dim * elem + scale_bytes)
        else:
            self.prefill_kv_heads, self.decode_kv_heads = self.heads, 1
            self.prefill_dims = (mla.qk_nope_dim + mla.qk_rope_dim, mla.v_dim)
            self.decode_dims = (mla.kv_lora_rank + mla.qk_rope_dim, mla.kv_lora_rank)
            self.kv_bytes_per_token = (mla.kv_lora_rank + mla.qk_rope_dim) * elem
        sliding = arch.num_sliding_layers if arch.sliding_window else 0
        # Linear-attention layers keep no KV cache; what they cost beyond products isn't modelled.
        kept = arch.num_layers if arch.num_kv_layers is None else arch.num_kv_layers
        groups = ((None, kept - sliding), (arch.sliding_window, sliding))
        self.groups: tuple[tuple[int | None, int], ...] = tuple(g for g in groups if g[1] > 0)

    def prefill(self, query_tokens: int, kv_tokens: int, *, joined: bool = False) -> list[Op]:
        """Return the operations of one chunk; `joined`: not the first chunk of its step."""
        qk_dim, v_dim = self.prefill_dims
        return [
            PrefillAttention(
                query_tokens, kv_tokens, self.heads, self.prefill_kv_heads, qk_dim, v_dim,
                self.kv_dtype, window, layers, joined,
            )
            for window, layers in self.groups
        ]  # fmt: skip

    def decode(self, seqs: int, kv_tokens: int, kv_max_tokens: int) -> list[Op]:
        """Return the operations of `seqs` one-token queries over `kv_tokens` in sum.

        Sliding-window layers see at most the window of each sequence; which sequences are
        longer isn't known here, so the cap acts on the sum (exact for even lengths).
        """
        qk_dim, v_dim = self.decode_dims
        found: list[Op] = []
        for window, layers in self.groups:
            seen, longest = kv_tokens, kv_max_tokens
            if window is not None:
                seen, longest = min(seen, seqs * window), min(longest, window)
            found.append(
                DecodeAttention(
                    seqs, seen, longest, self.heads, self.decode_kv_heads, qk_dim, v_dim,
                    self.kv_bytes_per_token, self.kv_dtype, layers,
                )
            )  # fmt: skip
        return found
