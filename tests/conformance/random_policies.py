"""Random policies of one engine, as far as it has what they say."""

import random
from typing import Any


def random_scenario(engine: str, rng: random.Random) -> dict[str, Any]:
    """Return what a scenario says of engine, parallelism and policy; most keys are left out."""
    policy, tp = _POLICIES[engine](rng), rng.choice([1, 1, 2, 4])
    found = {"engine": {"name": engine}, "policy": policy}
    return {**found, "parallelism": {"tp": tp}} if tp > 1 else found


def _some(rng: random.Random, choices: dict[str, Any]) -> dict[str, Any]:
    return {key: pick() for key, pick in choices.items() if rng.random() < 0.4}


def _common(rng: random.Random) -> dict[str, Any]:
    longest = rng.choice([2048, 4000, 8192, 32768])
    found = _some(
        rng,
        {
            "max_num_seqs": lambda: rng.randint(1, 2048),
            "max_num_batched_tokens": lambda: 64 * rng.randint(32, 512),
            "gpu_memory_utilization": lambda: round(rng.uniform(0.7, 0.97), 3),
            "num_gpu_blocks": lambda: rng.randint(4096, 60000),
            "enable_prefix_caching": lambda: rng.random() < 0.5,
            "scheduling_policy": lambda: rng.choice(["fcfs", "priority"]),
            "async_scheduling": lambda: rng.random() < 0.5,
            "enforce_eager": lambda: rng.random() < 0.5,
            "quantization": lambda: rng.choice(["none", "fp8", "int8", "int4"]),
        },
    )
    return {"max_model_len": longest, **found}


def _vllm(rng: random.Random) -> dict[str, Any]:
    found = _common(rng) | _some(
        rng,
        {
            "block_size": lambda: 16 * rng.choice([1, 2, 3, 4, 8]),
            "kv_cache_dtype": lambda: rng.choice(
                ["auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "int8", "int4_per_token_head"]
            ),
            "long_prefill_token_threshold": lambda: rng.randint(0, 2048),
            "scheduler_reserve_full_isl": lambda: rng.random() < 0.5,
            "watermark": lambda: round(rng.uniform(0, 0.2), 3),
            "eviction": lambda: rng.choice(["lru", "fifo", "arc", "s3_fifo"]),
            "cudagraph_mode": lambda: rng.choice(["piecewise", "full_and_piecewise"]),
            "max_cudagraph_capture_size": lambda: rng.randint(1, 1024),
        },
    )
    if rng.random() < 0.2:
        found |= {"enable_chunked_prefill": False, "max_num_batched_tokens": 32768}
    if "max_num_batched_tokens" in found and "max_num_seqs" in found:
        found["max_num_seqs"] = min(found["max_num_seqs"], found["max_num_batched_tokens"])
    return found


def _sglang(rng: random.Random) -> dict[str, Any]:
    page = rng.choice([1, 1, 16, 32, 64])
    found = _common(rng) | _some(
        rng, {"kv_cache_dtype": lambda: rng.choice(["bfloat16", "fp8", "fp8_e5m2", "int8"])}
    )
    own = _some(
        rng,
        {
            "max_prefill_tokens": lambda: rng.randint(2048, 32768),
            "schedule_conservativeness": lambda: round(rng.uniform(0.1, 2), 2),
            "schedule_policy": lambda: rng.choice(["fcfs", "lof", "lpm"]),
            "radix_eviction_policy": lambda: rng.choice(["lru", "lfu", "slru", "priority"]),
            "enable_mixed_chunk": lambda: rng.random() < 0.5,
            "cuda_graph_max_bs": lambda: rng.randint(1, 512),
        },
    )
    if "num_gpu_blocks" in found:
        found["num_gpu_blocks"] = max(found["num_gpu_blocks"], -(-65536 // page))
    return {**found, "sglang": {"page_size": page, **own}}


def _trtllm(rng: random.Random) -> dict[str, Any]:
    found = _common(rng) | _some(
        rng, {"kv_cache_dtype": lambda: rng.choice(["bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2"])}
    )
    own = _some(
        rng,
        {
            "tokens_per_block": lambda: rng.choice([16, 32, 64, 128]),
            "capacity_scheduler_policy": lambda: rng.choice(
                ["GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH"]
            ),
            "enable_chunked_prefill": lambda: rng.random() < 0.5,
            "batch_wait_timeout_iters": lambda: rng.randint(0, 20),
            "batch_wait_max_tokens_ratio": lambda: round(rng.random(), 2),
            "cuda_graph_max_batch_size": lambda: rng.randint(0, 512),
            "cuda_graph_padding": lambda: rng.random() < 0.5,
            "stream_interval": lambda: rng.randint(1, 20),
            "num_postprocess_workers": lambda: rng.randint(0, 4),
        },
    )
    return {**found, "trtllm": own}


_POLICIES = {"vllm": _vllm, "sglang": _sglang, "trtllm": _trtllm}
