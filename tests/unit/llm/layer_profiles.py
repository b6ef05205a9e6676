"""A small layer profile whose every figure is known."""

import numpy as np

from hwmodels.profile import HardwareProfile, Provenance
from twin.llm.arch import ModelArch, MoeArch

DENSE = ModelArch(
    "tiny", num_layers=3, hidden_size=4096, num_heads=32, num_kv_heads=8, head_dim=128,
    intermediate_size=14336, vocab_size=128256, max_position=8192,
)  # fmt: skip
SPARSE = ModelArch(
    "tiny-moe", num_layers=2, hidden_size=2048, num_heads=32, num_kv_heads=4, head_dim=128,
    intermediate_size=6144, vocab_size=151936, max_position=8192,
    moe=MoeArch(
        num_experts=128, experts_per_token=8, expert_intermediate=768, num_moe_layers=2
    ),
)  # fmt: skip

CHUNKS = (0, 16, 64, 256, 1024)
HISTORIES = (0, 128, 512, 1024)
DECODES = (0, 1, 4, 8, 16, 64)
CONTEXTS = (0, 128, 512, 1024, 2048, 8192)


def attention_s(chunk, history, seqs, kv):
    """A plausible attention: linear in decode KV, quadratic in the chunk."""
    pairs = chunk * (history + chunk / 2)
    return 1e-6 * (8 + pairs / 50_000 + (seqs * kv + history) / 400)


def attention_rows():
    return [
        (c, h, n, kv)
        for c in CHUNKS
        for h in (HISTORIES if c else (0,))
        for n in DECODES
        for kv in (CONTEXTS[1:] if n else (0,))
        if c or n
    ]


def layer_profile(arch=DENSE, *, gpu="rtx_4090", tp=1, tables=None, **facts):
    rows = attention_rows()
    dense = [
        (layer, tokens, us * (1 + tokens / 1000) * 1e-6)
        for layer, us in (
            ("embedding", 3), ("final_layernorm", 2), ("layernorm", 2), ("qkv_proj", 60),
            ("rotary_emb", 2), ("o_proj", 40), ("gate_up_proj", 250), ("act_fn", 3),
            ("down_proj", 130),
        )
        for tokens in (1, 512, 2048)
        if arch.moe is None or layer not in ("gate_up_proj", "act_fn", "down_proj")
    ]  # fmt: skip
    heads = [
        (layer, seqs, us * 1e-6 * (1 + seqs / 500))
        for layer, us in (("lm_head", 1100), ("sampler", 25))
        for seqs in (1, 256)
    ]
    found = {
        "attention": {
            name: np.array([row[i] for row in rows])
            for i, name in enumerate(("prefill_chunk", "kv_prefill", "n_decode", "kv_decode"))
        }
        | {"seconds": np.array([attention_s(*row) for row in rows])},
        "dense": columns(("layer", "tokens", "seconds"), dense),
        "per_sequence": columns(("layer", "sequences", "seconds"), heads),
    }
    if arch.moe is not None:
        experts = [
            (tokens, active, 1e-6 * (30 + 6 * active + tokens / 10))
            for tokens in (1, 64, 1024)
            for active in (8, 64, 128)
            if active <= 8 * tokens
        ]
        found["moe"] = columns(("tokens", "activated_experts", "seconds"), experts)
    return HardwareProfile(
        name=f"{gpu}-vllm-0.19.0", gpu=gpu, engine="vllm", engine_version="0.19.0", kind="layers",
        provenance=Provenance("test", "none", "2026-01-01"),
        tables=found | (tables or {}),
        facts={"llm": arch.name, "tp": tp, "variant": "bf16", **facts},
    )  # fmt: skip


def columns(names, rows):
    return {name: np.array([row[i] for row in rows]) for i, name in enumerate(names)}
