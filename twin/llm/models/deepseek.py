"""DeepSeek's multi-head-latent-attention networks, without the multi-token-prediction layer."""

from dataclasses import replace

from twin.llm.arch import MlaArch, ModelArch, MoeArch

DEEPSEEK_V3 = ModelArch(
    "deepseek-v3", num_layers=61, hidden_size=7168, num_heads=128, num_kv_heads=128, head_dim=192,
    intermediate_size=18432, vocab_size=129280, max_position=163840,
    moe=MoeArch(
        num_experts=256, experts_per_token=8, expert_intermediate=2048, num_moe_layers=58,
        shared_intermediate=2048, router_bias=True,
    ),
    mla=MlaArch(
        kv_lora_rank=512, q_lora_rank=1536, qk_nope_dim=128, qk_rope_dim=64, v_dim=128
    ),
    checkpoint_dtype="fp8", scale_block=(128, 128),
    source="huggingface.co/deepseek-ai/DeepSeek-V3 config.json",
)  # fmt: skip
DEEPSEEK_R1 = replace(
    DEEPSEEK_V3, name="deepseek-r1",
    source="huggingface.co/deepseek-ai/DeepSeek-R1 config.json",
)  # fmt: skip

DEEPSEEK_FAMILY = (DEEPSEEK_V3, DEEPSEEK_R1)
