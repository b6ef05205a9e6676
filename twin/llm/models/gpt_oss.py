"""OpenAI's gpt-oss: MXFP4 experts, every other layer sees a window of 128 tokens."""

from dataclasses import replace

from twin.llm.arch import ModelArch, MoeArch

GPT_OSS_20B = ModelArch(
    "gpt-oss-20b", num_layers=24, hidden_size=2880, num_heads=64, num_kv_heads=8, head_dim=64,
    intermediate_size=2880, vocab_size=201088, max_position=131072, qkv_bias=True, o_bias=True,
    mlp_bias=True, attention_sinks=True, sliding_window=128, num_sliding_layers=12,
    moe=MoeArch(
        num_experts=32, experts_per_token=4, expert_intermediate=2880, num_moe_layers=24,
        router_bias=True,
    ),
    checkpoint_dtype="mxfp4", unquantized=("attention", "mlp", "shared_expert"),
    source="huggingface.co/openai/gpt-oss-20b config.json",
)  # fmt: skip
GPT_OSS_120B = replace(
    GPT_OSS_20B, name="gpt-oss-120b", num_layers=36, num_sliding_layers=18,
    moe=MoeArch(
        num_experts=128, experts_per_token=4, expert_intermediate=2880, num_moe_layers=36,
        router_bias=True,
    ),
    source="huggingface.co/openai/gpt-oss-120b config.json",
)  # fmt: skip

GPT_OSS_FAMILY = (GPT_OSS_20B, GPT_OSS_120B)
