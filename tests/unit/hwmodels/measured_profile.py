"""A small profile whose every row is a known multiple of physics."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from hwmodels.attention import decode_cost, prefill_cost
from hwmodels.efficiency import EFFICIENCIES
from hwmodels.gemm import gemm_cost
from hwmodels.gpus import GPUS
from hwmodels.moe import expert_cost
from hwmodels.ops import DecodeAttention, ExpertGemm, Gemm, PrefillAttention
from hwmodels.profile import HardwareProfile, Provenance

H100, FIT = GPUS["h100_sxm"], EFFICIENCIES["h100_sxm"]
SIZES = (1024, 2048, 4096, 8192, 16384)
TOKENS = (1, 2, 8, 64, 256, 512, 4096)
BATCHES = (1, 2, 4, 16, 32, 64)
LENGTHS = (16, 64, 128, 512, 1024, 4096, 8192)

Row = dict[str, int]


def gemm_s(m: float, n: float, k: float) -> float:
    return gemm_cost(Gemm(int(m), int(n), int(k)), FIT.gemm, H100).seconds


def prefill_s(heads: int, kv_heads: int, batch: int, length: int) -> float:
    op = PrefillAttention(length, length, heads * batch, kv_heads * batch, 128, 128)
    return prefill_cost(op, FIT.prefill, H100).seconds


def decode_s(heads: int, kv_heads: int, batch: int, length: int) -> float:
    op = DecodeAttention(batch, batch * length, length, heads, kv_heads, 128, 128, 512.0 * kv_heads)
    return decode_cost(op, FIT.decode, H100, FIT.prefill.tensor, l2_warm=True).seconds


def experts_s(
    hidden: int, intermediate: int, experts: int, local: int, topk: int, tokens: int
) -> float:
    op = ExpertGemm(tokens, hidden, intermediate, 2 * intermediate, experts, local, topk)
    return expert_cost(op, FIT.gemm, H100).seconds


def table(
    axes: Mapping[str, tuple[int, ...]], seconds: Callable[..., float], factor: float
) -> dict[str, Any]:
    """Rows of all combinations, each `factor` times what `seconds` says."""
    rows = list(product(*axes.values()))
    columns: dict[str, Any] = {
        name: np.array([row[i] for row in rows]) for i, name in enumerate(axes)
    }
    columns["seconds"] = np.array([factor * seconds(*row) for row in rows])
    return columns


def profile(factor: float = 1.3, **more: Any) -> HardwareProfile:
    """A profile of H100 with every kernel `factor` times as slow as physics."""
    heads = {"heads": (8, 16, 32), "kv_heads": (8,), "batch": BATCHES, "length": LENGTHS}
    fields: dict[str, Any] = {
        "name": "h100_sxm-vllm-0.0.1",
        "gpu": "h100_sxm",
        "engine": "vllm",
        "engine_version": "0.0.1",
        "kind": "kernels",
        "provenance": Provenance("made up", "none", "2026-01-01"),
        "tables": {
            "gemm.bf16": table({"m": TOKENS, "n": SIZES, "k": SIZES}, gemm_s, factor),
            "prefill.128.bf16": table(heads, prefill_s, factor),
            "decode.128.bf16": table(heads, decode_s, factor),
            "experts.bf16": table(
                {
                    "hidden": (2048,),
                    "intermediate": (768,),
                    "experts": (128,),
                    "local": (128,),
                    "topk": (8,),
                    "tokens": TOKENS,
                },
                experts_s,
                factor,
            ),
            "engine_all_reduce": table(
                {"ranks": (2,), "bytes": tuple(2**i for i in range(10, 28))},
                lambda _, size: 5e-6 + size / 200e9 + (40e-6 if size >= 2**23 else 0.0),
                1.0,
            ),
            "nccl.all_reduce": table(
                {"ranks": (2,), "bytes": tuple(2**i for i in range(10, 28))},
                lambda _, size: min(6e-6 + size / 10e9, 20e-6 + size / 300e9),
                1.0,
            ),
        },
        "parameters": {
            "collectives": {"all_reduce/2": [[6.0, 10.0], [20.0, 300.0]]},
            "engine_all_reduce_limit_bytes": 2**23,
        },
    }
    return HardwareProfile(**{**fields, **more})
