"""Moonshot's Kimi: DeepSeek-V3's layers with fewer heads, more experts, and INT4 experts."""

from twin.llm.arch import MlaArch, ModelArch, MoeArch

KIMI_K25 = ModelArch(
    "kimi-k2.5", num_layers=61, hidden_size=7168, num_heads=64, num_kv_heads=64, head_dim=192,
    intermediate_size=18432, vocab_size=163840, max_position=262144,
    moe=MoeArch(
        num_experts=384, experts_per_token=8, expert_intermediate=2048, num_moe_layers=60,
        shared_intermediate=2048, router_bias=True,
    ),
    mla=MlaArch(
        kv_lora_rank=512, q_lora_rank=1536, qk_nope_dim=128, qk_rope_dim=64, v_dim=128
    ),
    checkpoint_dtype="int4", scale_block=(1, 32),
    unquantized=("attention", "mlp", "shared_expert"),
    source="huggingface.co/moonshotai/Kimi-K2.5 config.json, text_config",
    notes=("the image encoder's weights are not counted",),
)  # fmt: skip

MOONSHOT_FAMILY = (KIMI_K25,)
