"""Zhipu's GLM-5: latent attention over the tokens that an indexer selects."""

from dataclasses import replace

from twin.llm.arch import MlaArch, ModelArch, MoeArch

GLM_5 = ModelArch(
    "glm-5", num_layers=78, hidden_size=6144, num_heads=64, num_kv_heads=64, head_dim=256,
    intermediate_size=12288, vocab_size=154880, max_position=202752,
    moe=MoeArch(
        num_experts=256, experts_per_token=8, expert_intermediate=2048, num_moe_layers=75,
        shared_intermediate=2048, router_bias=True,
    ),
    mla=MlaArch(
        kv_lora_rank=512, q_lora_rank=2048, qk_nope_dim=192, qk_rope_dim=64, v_dim=256
    ),
    # The indexer: norm, rotation and quantisation of its queries and keys, its cache write, its
    # scores and their selection.
    extra_kernels=8,
    source="huggingface.co/zai-org/GLM-5 config.json",
    notes=(
        "attention is taken as dense: the indexer's selection of 2048 tokens, its weights and "
        "its keys are not counted",
        "the multi-token-prediction layer is not counted",
    ),
)  # fmt: skip
GLM_5_FP8 = replace(
    GLM_5, name="glm-5-fp8", checkpoint_dtype="fp8", scale_block=(128, 128),
    source="huggingface.co/zai-org/GLM-5-FP8 config.json",
)  # fmt: skip

GLM_FAMILY = (GLM_5, GLM_5_FP8)
