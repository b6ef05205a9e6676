"""Meta's Llama family and networks of its shape (CodeLlama, Yi)."""

from dataclasses import replace

from twin.llm.arch import ModelArch, MoeArch

LLAMA_2_7B = ModelArch(
    "llama-2-7b", num_layers=32, hidden_size=4096, num_heads=32, num_kv_heads=32, head_dim=128,
    intermediate_size=11008, vocab_size=32000, max_position=4096,
    source="huggingface.co/meta-llama/Llama-2-7b-hf config.json",
)  # fmt: skip
LLAMA_2_13B = replace(
    LLAMA_2_7B, name="llama-2-13b", num_layers=40, hidden_size=5120, num_heads=40,
    num_kv_heads=40, intermediate_size=13824,
    source="huggingface.co/meta-llama/Llama-2-13b-hf config.json",
)  # fmt: skip
LLAMA_2_70B = replace(
    LLAMA_2_7B, name="llama-2-70b", num_layers=80, hidden_size=8192, num_heads=64,
    num_kv_heads=8, intermediate_size=28672,
    source="huggingface.co/meta-llama/Llama-2-70b-hf config.json",
)  # fmt: skip
CODELLAMA_34B = replace(
    LLAMA_2_70B, name="codellama-34b", num_layers=48, intermediate_size=22016,
    max_position=16384, source="huggingface.co/codellama/CodeLlama-34b-Instruct-hf config.json",
)  # fmt: skip
YI_34B = ModelArch(
    "yi-34b", num_layers=60, hidden_size=7168, num_heads=56, num_kv_heads=8, head_dim=128,
    intermediate_size=20480, vocab_size=64000, max_position=4096,
    source="huggingface.co/01-ai/Yi-34B config.json",
)  # fmt: skip
LLAMA_31_8B = ModelArch(
    "llama-3.1-8b", num_layers=32, hidden_size=4096, num_heads=32, num_kv_heads=8, head_dim=128,
    intermediate_size=14336, vocab_size=128256, max_position=131072,
    source="huggingface.co/meta-llama/Llama-3.1-8B config.json",
)  # fmt: skip
LLAMA_31_70B = replace(
    LLAMA_31_8B, name="llama-3.1-70b", num_layers=80, hidden_size=8192, num_heads=64,
    intermediate_size=28672, source="huggingface.co/meta-llama/Llama-3.1-70B config.json",
)  # fmt: skip
LLAMA_31_405B = replace(
    LLAMA_31_8B, name="llama-3.1-405b", num_layers=126, hidden_size=16384, num_heads=128,
    intermediate_size=53248, source="huggingface.co/meta-llama/Llama-3.1-405B config.json",
)  # fmt: skip
LLAMA_31_8B_FP8 = replace(
    LLAMA_31_8B, name="llama-3.1-8b-fp8", checkpoint_dtype="fp8",
    source="huggingface.co/nvidia/Llama-3.1-8B-Instruct-FP8 config.json",
)  # fmt: skip
LLAMA_31_70B_FP8 = replace(
    LLAMA_31_70B, name="llama-3.1-70b-fp8", checkpoint_dtype="fp8",
    source="huggingface.co/nvidia/Llama-3.1-70B-Instruct-FP8 config.json",
)  # fmt: skip
# Meta's FP8 checkpoint keeps attention and the first and last MLP in bf16 and was laid out for
# FBGEMM: take its size from a start-up log, 57.7520 GiB a GPU at TP 8.
LLAMA_31_405B_FP8 = replace(
    LLAMA_31_405B, name="llama-3.1-405b-fp8", checkpoint_dtype="fp8", unquantized=("attention",),
    checkpoint_bytes=round(8 * 57.7520 * 2**30),
    source="huggingface.co/meta-llama/Llama-3.1-405B-Instruct-FP8 config.json; size from "
    "github.com/vllm-project/vllm/issues/6746",
)  # fmt: skip
LLAMA_32_1B = ModelArch(
    "llama-3.2-1b", num_layers=16, hidden_size=2048, num_heads=32, num_kv_heads=8, head_dim=64,
    intermediate_size=8192, vocab_size=128256, max_position=131072, tied_embeddings=True,
    source="huggingface.co/meta-llama/Llama-3.2-1B config.json",
)  # fmt: skip
LLAMA_32_3B = replace(
    LLAMA_32_1B, name="llama-3.2-3b", num_layers=28, hidden_size=3072, num_heads=24, head_dim=128,
    source="huggingface.co/meta-llama/Llama-3.2-3B config.json",
)  # fmt: skip
LLAMA_33_70B = replace(
    LLAMA_31_70B, name="llama-3.3-70b",
    source="huggingface.co/meta-llama/Llama-3.3-70B-Instruct config.json",
)  # fmt: skip
# Text part only: image encoder and projector are not counted. Three of four layers attend within
# chunks of 8192 tokens.
LLAMA_4_SCOUT = ModelArch(
    "llama-4-scout", num_layers=48, hidden_size=5120, num_heads=40, num_kv_heads=8, head_dim=128,
    intermediate_size=16384, vocab_size=202048, max_position=10485760, sliding_window=8192,
    num_sliding_layers=36,
    moe=MoeArch(
        num_experts=16, experts_per_token=1, expert_intermediate=8192, num_moe_layers=48,
        shared_intermediate=8192,
    ),
    source="huggingface.co/meta-llama/Llama-4-Scout-17B-16E-Instruct config.json, text_config",
    notes=("the image encoder's weights and profiling step are not counted",),
)  # fmt: skip
LLAMA_4_SCOUT_FP8 = replace(
    LLAMA_4_SCOUT, name="llama-4-scout-fp8", checkpoint_dtype="fp8", unquantized=("attention",),
    source="huggingface.co/RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic config.json",
)  # fmt: skip

LLAMA_FAMILY = (
    LLAMA_2_7B, LLAMA_2_13B, LLAMA_2_70B, CODELLAMA_34B, YI_34B, LLAMA_31_8B, LLAMA_31_70B,
    LLAMA_31_405B, LLAMA_31_8B_FP8, LLAMA_31_70B_FP8, LLAMA_31_405B_FP8, LLAMA_32_1B, LLAMA_32_3B,
    LLAMA_33_70B, LLAMA_4_SCOUT, LLAMA_4_SCOUT_FP8,
)  # fmt: skip
