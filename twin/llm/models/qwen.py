"""Alibaba's Qwen2.5, Qwen3 and Qwen3.5."""

from dataclasses import replace

from twin.llm.arch import ModelArch, MoeArch

QWEN25_7B = ModelArch(
    "qwen2.5-7b", num_layers=28, hidden_size=3584, num_heads=28, num_kv_heads=4, head_dim=128,
    intermediate_size=18944, vocab_size=152064, max_position=32768, qkv_bias=True,
    source="huggingface.co/Qwen/Qwen2.5-7B-Instruct config.json",
)  # fmt: skip
QWEN25_32B = replace(
    QWEN25_7B, name="qwen2.5-32b", num_layers=64, hidden_size=5120, num_heads=40, num_kv_heads=8,
    intermediate_size=27648, source="huggingface.co/Qwen/Qwen2.5-32B-Instruct config.json",
)  # fmt: skip
QWEN25_72B = replace(
    QWEN25_7B, name="qwen2.5-72b", num_layers=80, hidden_size=8192, num_heads=64, num_kv_heads=8,
    intermediate_size=29568, source="huggingface.co/Qwen/Qwen2.5-72B-Instruct config.json",
)  # fmt: skip
QWEN3_8B = ModelArch(
    "qwen3-8b", num_layers=36, hidden_size=4096, num_heads=32, num_kv_heads=8, head_dim=128,
    intermediate_size=12288, vocab_size=151936, max_position=40960, qk_norm=True,
    source="huggingface.co/Qwen/Qwen3-8B config.json",
)  # fmt: skip
QWEN3_06B = replace(
    QWEN3_8B, name="qwen3-0.6b", num_layers=28, hidden_size=1024, num_heads=16,
    intermediate_size=3072, tied_embeddings=True,
    source="huggingface.co/Qwen/Qwen3-0.6B config.json",
)  # fmt: skip
QWEN3_4B = replace(
    QWEN3_8B, name="qwen3-4b", hidden_size=2560, intermediate_size=9728, tied_embeddings=True,
    source="huggingface.co/Qwen/Qwen3-4B config.json",
)  # fmt: skip
QWEN3_14B = replace(
    QWEN3_8B, name="qwen3-14b", num_layers=40, hidden_size=5120, num_heads=40,
    intermediate_size=17408, source="huggingface.co/Qwen/Qwen3-14B config.json",
)  # fmt: skip
QWEN3_32B = replace(
    QWEN3_8B, name="qwen3-32b", num_layers=64, hidden_size=5120, num_heads=64,
    intermediate_size=25600, source="huggingface.co/Qwen/Qwen3-32B config.json",
)  # fmt: skip
QWEN3_30B_A3B = replace(
    QWEN3_8B, name="qwen3-30b-a3b", num_layers=48, hidden_size=2048, num_kv_heads=4,
    intermediate_size=6144,
    moe=MoeArch(
        num_experts=128, experts_per_token=8, expert_intermediate=768, num_moe_layers=48
    ),
    source="huggingface.co/Qwen/Qwen3-30B-A3B config.json",
)  # fmt: skip
QWEN3_235B_A22B = replace(
    QWEN3_30B_A3B, name="qwen3-235b-a22b", num_layers=94, hidden_size=4096, num_heads=64,
    intermediate_size=12288,
    moe=MoeArch(
        num_experts=128, experts_per_token=8, expert_intermediate=1536, num_moe_layers=94
    ),
    source="huggingface.co/Qwen/Qwen3-235B-A22B config.json",
)  # fmt: skip
# Text part only. Of four layers three are linear attention, whose gates and convolutions have no
# counterpart in `ModelArch`: their products are taken as those of the full-attention layers.
QWEN35_397B_A17B = replace(
    QWEN3_8B, name="qwen3.5-397b-a17b", num_layers=60, hidden_size=4096, num_heads=32,
    num_kv_heads=2, head_dim=256, intermediate_size=1024, vocab_size=248320, max_position=262144,
    num_kv_layers=15, rope_dim=64,
    # Convolution, gates, norms, decay and recurrence of a linear layer, less its attention.
    extra_kernels=6,
    moe=MoeArch(
        num_experts=512, experts_per_token=10, expert_intermediate=1024, num_moe_layers=60,
        shared_intermediate=1024, shared_gate=True,
    ),
    source="huggingface.co/Qwen/Qwen3.5-397B-A17B config.json, text_config",
    notes=(
        "45 of 60 layers are linear attention: their state is not counted and their weights are "
        "taken as those of attention",
        "the image encoder's weights are not counted",
    ),
)  # fmt: skip


def _block_fp8(arch: ModelArch, repository: str) -> ModelArch:
    """Return Qwen's own FP8 checkpoint of `arch`: one scale for 128 × 128 weights."""
    return replace(
        arch,
        name=f"{arch.name}-fp8",
        checkpoint_dtype="fp8",
        scale_block=(128, 128),
        source=f"huggingface.co/Qwen/{repository} config.json",
    )


QWEN_FAMILY = (
    QWEN25_7B, QWEN25_32B, QWEN25_72B, QWEN3_06B, QWEN3_4B, QWEN3_8B, QWEN3_14B, QWEN3_32B,
    QWEN3_30B_A3B, QWEN3_235B_A22B, QWEN35_397B_A17B,
    _block_fp8(QWEN3_8B, "Qwen3-8B-FP8"),
    _block_fp8(QWEN3_32B, "Qwen3-32B-FP8"),
    _block_fp8(QWEN3_30B_A3B, "Qwen3-30B-A3B-FP8"),
    _block_fp8(QWEN3_235B_A22B, "Qwen3-235B-A22B-FP8"),
    _block_fp8(QWEN35_397B_A17B, "Qwen3.5-397B-A17B-FP8"),
)  # fmt: skip
