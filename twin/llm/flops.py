"""Arithmetic of a forward pass, part by part, over the whole network (no sharding)."""

import math
from dataclasses import dataclass

from twin.llm.arch import ModelArch


@dataclass(frozen=True, slots=True)
class PartFlops:
    """Floating-point operations (a multiply-add counts two) of each part of a pass."""

    attention_projections: float
    attention_scores: float
    mlp: float
    lm_head: float

    @property
    def total(self) -> float:
        """All parts."""
        return self.attention_projections + self.attention_scores + self.mlp + self.lm_head


def flops_by_part(
    arch: ModelArch, num_tokens: int, context: float, *, sampled: int | None = None
) -> PartFlops:
    """Return the FLOPs of `num_tokens` tokens that each attend to `context` tokens on average.

    Args:
        context: KV tokens a query sees, itself included; for a whole prompt of S tokens with
            causal attention that is (S + 1) / 2. Sliding-window layers cap it.
        sampled: tokens that need logits; all by default.
    """
    sliding = arch.num_sliding_layers if arch.sliding_window else 0
    seen = (arch.num_layers - sliding) * context
    if sliding and arch.sliding_window:
        seen += sliding * min(context, arch.sliding_window)
    dims = arch.mla.qk_nope_dim + arch.mla.qk_rope_dim + arch.mla.v_dim if arch.mla else 0
    score_dims = dims or 2 * arch.head_dim
    rows = num_tokens if sampled is None else sampled
    return PartFlops(
        attention_projections=2.0 * num_tokens * arch.num_layers * projection_params(arch),
        attention_scores=2.0 * num_tokens * arch.num_heads * score_dims * seen,
        mlp=2.0 * num_tokens * active_mlp_params(arch),
        lm_head=2.0 * rows * arch.hidden_size * arch.vocab_size,
    )


def attention_parity_tokens(arch: ModelArch) -> float:
    """Return the context at which a prompt token's attention costs as much as all else.

    All else is projections and MLPs; logits are of one token a prompt. Where every layer has a
    sliding window, attention stops growing and the answer is infinite.
    """
    near, far = (flops_by_part(arch, 1, context, sampled=0) for context in (2.0**30, 2.0**31))
    a_token = (far.attention_scores - near.attention_scores) / 2.0**30
    rest = near.attention_projections + near.mlp
    return rest / a_token if a_token else math.inf


def projection_params(arch: ModelArch) -> int:
    """Return the weights of one layer's attention projections."""
    mla, hidden = arch.mla, arch.hidden_size
    if mla is None:
        width = (2 * arch.num_heads + 2 * arch.num_kv_heads) * arch.head_dim
        return hidden * width
    query_width = arch.num_heads * (mla.qk_nope_dim + mla.qk_rope_dim)
    query_in = mla.q_lora_rank or hidden
    query = query_in * query_width + (hidden * mla.q_lora_rank)
    latent = hidden * (mla.kv_lora_rank + mla.qk_rope_dim)
    expand = mla.kv_lora_rank * arch.num_heads * (mla.qk_nope_dim + mla.v_dim)
    return query + latent + expand + arch.num_heads * mla.v_dim * hidden


def active_mlp_params(arch: ModelArch) -> int:
    """Return the MLP weights a token passes through, over all layers (router included)."""
    factor = 3 if arch.gated_mlp else 2
    dense = factor * arch.hidden_size * arch.intermediate_size
    if arch.moe is None:
        return arch.num_layers * dense
    moe = arch.moe
    width = moe.experts_per_token * moe.expert_intermediate + moe.shared_intermediate
    sparse = arch.hidden_size * (factor * width + moe.num_experts)
    return (arch.num_layers - moe.num_moe_layers) * dense + moe.num_moe_layers * sparse
