"""Deployments whose exported files are kept: one line a case."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twin.export.deployment import Deployment, deployment_of
from twin.export.targets import EXPORTERS
from twin.load import scenario_from

FOLDER = Path(__file__).parent

# Figures of no simulation: forecasts improve, and these files are kept for what engines are told.
SUMMARY: dict[str, Any] = {
    "requests": 1000,
    "finished": 998,
    "ttft_s": {"mean": 0.0625, "p50": 0.05, "p90": 0.125, "p95": 0.2, "p99": 0.25},
    "tpot_s": {"mean": 0.0125, "p50": 0.012, "p90": 0.015, "p95": 0.016, "p99": 0.0175},
    "itl_s": {"mean": 0.0125, "p50": 0.01, "p90": 0.02, "p95": 0.03, "p99": 0.0625},
    "requests_per_s": 12.5,
    "output_tokens_per_s": 2500.0,
    "goodput_requests_per_s": 12.25,
    "slo_met": True,
    "slo": {
        "percentile": 99.0,
        "ttft_s": 0.25,
        "ttft_s_limit": 0.5,
        "tpot_s": 0.0175,
        "tpot_s_limit": 0.03,
    },
    "running": {"mean": 24.0, "max": 60.0},
    "waiting": {"mean": 0.5, "max": 9.0},
    "queue_grows": False,
}

BASE: dict[str, Any] = {
    "schema_version": 1,
    "name": "golden",
    "llm": "llama-3.1-8b",
    "gpu": "h100_sxm",
    "workload": {
        "kind": "synthetic",
        "arrivals": {"kind": "poisson", "rate": 4},
        "num_requests": 20,
        "prompt_tokens": 100,
        "output_tokens": 20,
    },
    "slo": {"ttft_s": 0.5, "tpot_s": 0.03},
}

VLLM_ALL = {
    "max_num_seqs": 512,
    "max_num_batched_tokens": 4096,
    "max_model_len": 32768,
    "block_size": 32,
    "num_gpu_blocks": 20000,
    "gpu_memory_utilization": 0.9,
    "kv_cache_dtype": "fp8_e4m3",
    "quantization": "fp8",
    "enable_prefix_caching": False,
    "long_prefill_token_threshold": 2048,
    "scheduling_policy": "priority",
    "scheduler_reserve_full_isl": False,
    "watermark": 0.02,
    "async_scheduling": False,
    "cudagraph_mode": "piecewise",
    "max_cudagraph_capture_size": 256,
}
SGLANG_ALL = {
    "max_num_seqs": 512,
    "max_num_batched_tokens": 4096,
    "max_model_len": 32768,
    "num_gpu_blocks": 20000,
    "gpu_memory_utilization": 0.85,
    "kv_cache_dtype": "fp8_e5m2",
    "quantization": "fp8",
    "enable_prefix_caching": False,
    "scheduling_policy": "priority",
    "async_scheduling": False,
    "enforce_eager": True,
    "sglang": {
        "page_size": 16,
        "max_prefill_tokens": 8192,
        "schedule_conservativeness": 0.5,
        "schedule_policy": "lof",
        "radix_eviction_policy": "slru",
        "enable_mixed_chunk": True,
        "cuda_graph_max_bs": 128,
    },
}
TRTLLM_ALL = {
    "max_num_seqs": 512,
    "max_num_batched_tokens": 4096,
    "max_model_len": 32768,
    "num_gpu_blocks": 20000,
    "gpu_memory_utilization": 0.85,
    "kv_cache_dtype": "fp8",
    "enable_prefix_caching": False,
    "async_scheduling": False,
    "trtllm": {
        "tokens_per_block": 64,
        "capacity_scheduler_policy": "MAX_UTILIZATION",
        "enable_chunked_prefill": True,
        "batch_wait_timeout_iters": 4,
        "batch_wait_max_tokens_ratio": 0.5,
        "cuda_graph_max_batch_size": 256,
        "cuda_graph_padding": True,
        "stream_interval": 4,
        "num_postprocess_workers": 2,
    },
}
FLEET = {
    "replicas": 3,
    "router": "prefix_aware",
    "startup_s": 300,
    "autoscaler": {
        "metric": "waiting", "target": 2.5, "min_replicas": 2, "max_replicas": 8,
        "scale_up_stabilization_s": 30, "interval_s": 30,
    },
}  # fmt: skip
POOLS = {
    "pools": [
        {"name": "Long prompts", "replicas": 1, "parallelism": {"tp": 2}},
        {"name": "short", "replicas": 2, "policy": {"max_num_seqs": 128}},
    ]
}


def _of(name: str, version: str | None = None) -> dict[str, Any]:
    return {"engine": {"name": name, **({"version": version} if version else {})}}


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "vllm-0.33.0/defaults": ("vllm", {}),
    "vllm-0.33.0/all": ("vllm", {"policy": VLLM_ALL}),
    "vllm-0.33.0/tp4": (
        "vllm",
        {
            "llm": "llama-3.1-70b-fp8",
            "parallelism": {"tp": 4},
            "policy": {"max_model_len": 16384, "quantization": "fp8", "kv_cache_dtype": "fp8"},
        },
    ),
    "vllm-0.33.0/experts": (
        "vllm",
        {"llm": "qwen3-30b-a3b", "parallelism": {"tp": 2, "dp": 2, "ep": 4}},
    ),
    "vllm-0.33.0/unmapped": (
        "vllm",
        {
            "policy": {
                "kv_cache_dtype": "int8",
                "quantization": "int4",
                "eviction": "arc",
                "sglang": {"page_size": 8},
            },
            "kv_layout": {"order": "scattered"},
            "clients": {"timeout_s": 30, "retry": {"kind": "exponential"}},
            "cluster": {"replicas": 2, "router": "least_requests"},
        },
    ),
    "vllm-0.33.0/pools": ("vllm", {"cluster": POOLS}),
    "vllm-0.33.0/kubernetes": ("kubernetes", {"cluster": FLEET, "policy": VLLM_ALL}),
    "vllm-0.33.0/kubernetes-still": ("kubernetes", {"cluster": {"replicas": 2}}),
    "vllm-0.33.0/kubernetes-pools": ("kubernetes", {"cluster": POOLS}),
    "vllm-0.33.0/llm_d": (
        "llm_d",
        {"cluster": FLEET, "parallelism": {"tp": 2}, "policy": VLLM_ALL},
    ),
    "vllm-0.33.0/dynamo": ("dynamo", {"cluster": FLEET, "policy": VLLM_ALL}),
    "vllm-0.19.0/defaults": ("vllm", {**_of("vllm", "0.19.0"), "policy": {"max_num_seqs": 256}}),
    "sglang-0.5.23/defaults": ("sglang", _of("sglang")),
    "sglang-0.5.23/all": ("sglang", {**_of("sglang"), "policy": SGLANG_ALL}),
    "sglang-0.5.23/kubernetes": (
        "kubernetes",
        {**_of("sglang"), "policy": SGLANG_ALL, "cluster": {**FLEET, "router": "random"}},
    ),
    "sglang-0.5.23/dynamo": ("dynamo", {**_of("sglang"), "cluster": FLEET}),
    "trtllm-1.4.0/defaults": ("trtllm", _of("trtllm")),
    "trtllm-1.4.0/all": (
        "trtllm",
        {**_of("trtllm"), "policy": {**TRTLLM_ALL, "scheduling_policy": "priority"}},
    ),
    "trtllm-1.4.0/eager": (
        "trtllm",
        {
            **_of("trtllm"),
            "policy": {"enforce_eager": True, "trtllm": {"cuda_graph_padding": True}},
        },
    ),
    "trtllm-1.4.0/kubernetes": ("kubernetes", {**_of("trtllm"), "policy": TRTLLM_ALL}),
    "trtllm-1.4.0/dynamo": ("dynamo", {**_of("trtllm"), "policy": TRTLLM_ALL, "cluster": FLEET}),
    "trtllm-1.2.0/all": ("trtllm", {**_of("trtllm", "1.2.0"), "policy": TRTLLM_ALL}),
}
"""By folder: the target, and what the scenario says beyond `BASE`."""


def deployment(changes: dict[str, Any]) -> Deployment:
    """Return a deployment with the figures of `SUMMARY`."""
    scenario = scenario_from({**BASE, **changes})
    return deployment_of(scenario, "golden.yaml", SUMMARY)


def exported(case: str) -> dict[str, str]:
    """Return the files of a case."""
    target, changes = CASES[case]
    return EXPORTERS[target].files(deployment(changes))


def kept() -> Iterator[tuple[str, Path]]:
    """Yield (case, file) of all that is kept."""
    for case in CASES:
        for path in sorted((FOLDER / case).iterdir()):
            yield case, path
