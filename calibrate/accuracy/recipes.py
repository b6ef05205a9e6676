"""How the servers behind the measured rows were started.

The rows with uniform lengths are InferenceX runs; its benchmark scripts (one a network, GPU and
engine, github.com/SemiAnalysisAI/InferenceX, folder `benchmarks`) name the flags below. The
scripts of the rows with exact lengths are not public: there the engines' defaults stand, and for
TensorRT-LLM the token budget that aiconfigurator's own generator writes. What the table does not
say either, an engine's version for one, is assumed and said so in `Recipe.assumed`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from calibrate.accuracy.rows import Row

_EXACT_REQUESTS = 20
_REQUESTS = 10
_GLM_REQUESTS = 5  # glm5_fp8_h200.sh

# What a blank version is taken for: a release of those months, by the kernel tables that come
# closest; and the branches that two builds were made from.
_UNKNOWN_VERSION = {"vllm": "0.14.0", "trtllm": "1.3.0", "sglang": "0.5.9"}
_BUILDS = {"gpt-oss-dev": "1.1.0", "glm5-hopper": "0.5.9"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """A policy (as `EnginePolicy` takes it), a version, and how many requests a client sends.

    `speculative`: the server drafted tokens ahead, which the table does not say.
    """

    policy: dict[str, Any]
    version: str
    requests_per_client: int
    assumed: tuple[str, ...] = field(default=())
    speculative: bool = False


def recipe_of(row: Row) -> Recipe:
    """Return how the server of a row was started."""
    policy = {"enable_prefix_caching": False, **_POLICIES[row.engine](row)}
    version, assumed = row.version, []
    if not version or version in _BUILDS:
        version = _BUILDS.get(version, _UNKNOWN_VERSION[row.engine])
        assumed.append(f"engine version {version}")
    if row.exact:
        assumed.append("flags of the server")
    return Recipe(policy, version, _requests(row), tuple(assumed), _is_speculative(row))


def _is_speculative(row: Row) -> bool:
    """Whether a row comes from dsr1_fp8_h200_trt_mtp.sh.

    The table holds two sets of rows for DeepSeek with experts spread over 8 GPUs under
    TensorRT-LLM; those under the name of R1 have 0.6 of the others' TPOT, and a script with
    multi-token prediction is the one that spreads experts so.
    """
    return row.engine == "trtllm" and row.model.endswith("DeepSeek-R1") and row.ep == 8


def _requests(row: Row) -> int:
    if row.exact:
        return _EXACT_REQUESTS
    return _GLM_REQUESTS if "GLM" in row.model else _REQUESTS


def _context(row: Row) -> int:
    """Longest context the server was started with: a little above the nominal lengths."""
    return row.isl + row.osl + (20 if row.isl == row.osl else 200)


def _vllm(row: Row) -> dict[str, Any]:
    """70b_fp8_h200, gptoss_fp4_h100, kimik2.5_int4_h200 and minimaxm2.5_fp8_h100."""
    policy: dict[str, Any] = {
        "max_num_seqs": row.concurrency,
        "max_num_batched_tokens": 8192,
        "max_model_len": _context(row),
        "gpu_memory_utilization": 0.9,
    }
    if "Llama" in row.model:
        return {**policy, "kv_cache_dtype": "fp8", "async_scheduling": True}
    if "gpt-oss" in row.model:
        return {**policy, "max_model_len": 10240, "max_cudagraph_capture_size": 2048}
    if "Kimi" in row.model:
        return {**policy, "gpu_memory_utilization": 0.95}
    if "MiniMax" in row.model:
        return {**policy, "max_num_seqs": 256, "cudagraph_mode": "piecewise"}
    return policy


def _sglang(row: Row) -> dict[str, Any]:
    """dsr1_fp8_h200, qwen3.5_fp8_h200 and glm5_fp8_h200; defaults for Qwen3-32B."""
    if "DeepSeek" in row.model:
        most = 512 if row.isl == row.osl else 256
        return {
            "max_num_seqs": most,
            "max_num_batched_tokens": 32768,
            "gpu_memory_utilization": 0.82,
            "sglang": {"max_prefill_tokens": 32768, "cuda_graph_max_bs": most},
        }
    if "Qwen3.5" in row.model:
        return {
            "max_num_seqs": 128,
            "max_num_batched_tokens": 16384,
            "max_model_len": _context(row),
            "kv_cache_dtype": "fp8",
            "gpu_memory_utilization": 0.8,
            "sglang": {"max_prefill_tokens": 16384, "cuda_graph_max_bs": row.concurrency},
        }
    if "GLM" in row.model:
        return {"gpu_memory_utilization": 0.85}
    return {}


def _trtllm(row: Row) -> dict[str, Any]:
    """70b_fp8_h200_trt, dsr1_fp8_h200_trt and gptoss_fp4_h200_trt."""
    if "70B" in row.model:
        graphs: dict[str, Any] = {"cuda_graph_padding": True, "cuda_graph_max_batch_size": 1024}
        graphs |= {"stream_interval": 10, "num_postprocess_workers": 2}
        if row.isl == row.osl == 1024 and row.tp < 8:
            graphs |= {"batch_wait_max_tokens_ratio": 0.9, "batch_wait_timeout_iters": 20}
        return {"max_num_batched_tokens": 16384, "kv_cache_dtype": "fp8", "trtllm": graphs}
    if "DeepSeek" in row.model:
        tokens = -(-(row.concurrency + row.isl + 64) // 64) * 64
        return {
            "max_num_batched_tokens": max(8192, tokens),
            "kv_cache_dtype": "fp8",
            "gpu_memory_utilization": 0.75,
            "trtllm": {
                "cuda_graph_padding": True,
                "cuda_graph_max_batch_size": 128,
                "stream_interval": 10,
            },
        }
    if "gpt-oss" in row.model and not row.exact:
        return {
            "max_num_seqs": row.concurrency,
            "max_num_batched_tokens": 20000,
            "gpu_memory_utilization": 0.85,
            "trtllm": {
                "cuda_graph_padding": True,
                "cuda_graph_max_batch_size": row.concurrency,
                "stream_interval": 20,
                "num_postprocess_workers": 4,
            },
        }
    # aiconfigurator's generator: batch + prompt + 500, in steps of 32.
    tokens = -(-(row.concurrency + row.isl + 500) // 32) * 32
    kv = {"kv_cache_dtype": "fp8"} if "fp8" in row.precision else {}
    # The Llama-8B runs had one request queued at all times: a batch one below the clients.
    places = row.concurrency - ("8B" in row.model)
    return {
        "max_num_seqs": places,
        "max_num_batched_tokens": tokens,
        **kv,
        "trtllm": {"cuda_graph_padding": True, "cuda_graph_max_batch_size": row.concurrency},
    }


_POLICIES: dict[str, Callable[[Row], dict[str, Any]]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "trtllm": _trtllm,
}
