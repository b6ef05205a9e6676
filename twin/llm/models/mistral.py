"""Mistral AI's dense and mixture-of-experts networks."""

from dataclasses import replace

from twin.llm.arch import ModelArch, MoeArch

MISTRAL_7B = ModelArch(
    "mistral-7b", num_layers=32, hidden_size=4096, num_heads=32, num_kv_heads=8, head_dim=128,
    intermediate_size=14336, vocab_size=32768, max_position=32768,
    source="huggingface.co/mistralai/Mistral-7B-Instruct-v0.3 config.json",
)  # fmt: skip
MISTRAL_NEMO_12B = replace(
    MISTRAL_7B, name="mistral-nemo-12b", num_layers=40, hidden_size=5120, vocab_size=131072,
    max_position=1024000,
    source="huggingface.co/mistralai/Mistral-Nemo-Instruct-2407 config.json",
)  # fmt: skip
MIXTRAL_8X7B = replace(
    MISTRAL_7B, name="mixtral-8x7b", vocab_size=32000,
    moe=MoeArch(
        num_experts=8, experts_per_token=2, expert_intermediate=14336, num_moe_layers=32
    ),
    source="huggingface.co/mistralai/Mixtral-8x7B-v0.1 config.json",
)  # fmt: skip

MISTRAL_FAMILY = (MISTRAL_7B, MISTRAL_NEMO_12B, MIXTRAL_8X7B)
