"""MiniMax's mixture-of-experts networks, without the multi-token-prediction layers."""

from twin.llm.arch import ModelArch, MoeArch

MINIMAX_M25 = ModelArch(
    "minimax-m2.5", num_layers=62, hidden_size=3072, num_heads=48, num_kv_heads=8, head_dim=128,
    intermediate_size=1536, vocab_size=200064, max_position=196608, rope_dim=64,
    moe=MoeArch(
        num_experts=256, experts_per_token=8, expert_intermediate=1536, num_moe_layers=62,
        router_bias=True,
    ),
    checkpoint_dtype="fp8", scale_block=(128, 128),
    source="huggingface.co/MiniMaxAI/MiniMax-M2.5 config.json",
    notes=("norms over all query and key heads together are not counted",),
)  # fmt: skip

MINIMAX_FAMILY = (MINIMAX_M25,)
