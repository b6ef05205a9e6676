"""The facts of a network that memory and time depend on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MoeArch:
    """Mixture-of-experts part.

    `num_moe_layers` of the network's layers are MoE, the rest are dense with the network's
    `intermediate_size`. `shared_intermediate` is the width of the always-on expert, 0 if none.
    `router_bias`: one bias (or score correction) an expert. `shared_gate`: a one-column gate on
    the always-on expert (Qwen2-MoE).
    """

    num_experts: int
    experts_per_token: int
    expert_intermediate: int
    num_moe_layers: int
    shared_intermediate: int = 0
    router_bias: bool = False
    shared_gate: bool = False


@dataclass(frozen=True, slots=True)
class MlaArch:
    """Multi-head latent attention (DeepSeek): one latent per token instead of K and V heads.

    `q_lora_rank` 0: queries are projected from the hidden state directly (DeepSeek-V2-Lite).
    """

    kv_lora_rank: int
    q_lora_rank: int
    qk_nope_dim: int
    qk_rope_dim: int
    v_dim: int


@dataclass(frozen=True, slots=True)
class ModelArch:
    """A decoder-only transformer.

    Attributes:
        sliding_window: tokens a sliding-window layer sees; None: every layer is full attention.
        num_sliding_layers: how many layers use the window.
        checkpoint_dtype: how the published weights are stored: bf16, fp8, mxfp4.
        checkpoint_bytes: exact bytes of the published checkpoint where known, else None.
        max_position: longest context the network was trained for.
        source: where the facts come from.
        qk_norm: RMS norms on queries and keys, one `head_dim` vector each (Qwen3, Gemma 3).
        o_bias, mlp_bias: biases of the attention output and of the MLP (or expert) projections.
        attention_sinks: one learned logit a head (gpt-oss).
        norms_per_layer: RMS norms of width `hidden_size` in a layer.
        num_kv_layers: layers that keep a KV cache; None: all (fewer in linear-attention hybrids).
        rope_dim: rotated dimensions of a head; None: all of `head_dim` (or MLA's rope part).
        scale_block: (rows, columns) of weights that share a quantisation scale; None: one scale a
            tensor (FP8) or an output row (INT8), groups of 128 along a row (INT4).
        unquantized: matrix roles that a quantised checkpoint keeps in bf16: attention, mlp,
            expert, shared_expert (see `twin.llm.weights`).
        extra_kernels: small kernels of a layer beyond those of a plain network (indexers, gates,
            convolutions), on average over its layers.
        notes: what a reader should know about how these facts were obtained.
    """

    name: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    vocab_size: int
    max_position: int
    tied_embeddings: bool = False
    qkv_bias: bool = False
    gated_mlp: bool = True
    sliding_window: int | None = None
    num_sliding_layers: int = 0
    moe: MoeArch | None = None
    mla: MlaArch | None = None
    checkpoint_dtype: str = "bf16"
    checkpoint_bytes: int | None = None
    source: str = ""
    qk_norm: bool = False
    o_bias: bool = False
    mlp_bias: bool = False
    attention_sinks: bool = False
    norms_per_layer: int = 2
    num_kv_layers: int | None = None
    rope_dim: int | None = None
    scale_block: tuple[int, int] | None = None
    unquantized: tuple[str, ...] = ()
    extra_kernels: int = 0
    notes: tuple[str, ...] = ()
