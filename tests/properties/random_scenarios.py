"""Scenarios drawn at random over what the engines must agree on."""

import random

ROUTERS = (
    "round_robin",
    "random",
    "least_requests",
    "least_tokens",
    "power_of_two",
    "session_sticky",
    "prefix_aware",
    "prefix_aware",
)


def random_scenario(seed):
    """Return a scenario as plain data: scarce KV, priorities, prefixes, sessions, loops, cuts."""
    rng = random.Random(seed)
    policy = _policy(rng)
    data = {
        "schema_version": 1,
        "llm": "llama-3.1-8b",
        "gpu": rng.choice(["h100_sxm", "a100_sxm", "l40s"]),
        "engine": {"name": "vllm", "version": "0.33.0"},
        "policy": policy,
        "workload": _WORKLOADS[rng.choice(sorted(_WORKLOADS))](rng),
        "seed": seed,
        "cluster": {"replicas": rng.choice([1, 1, 2, 4])},
    }
    if rng.random() < 0.2:
        data["horizon_s"] = rng.uniform(0.5, 5)
    # A stream of its own, so that what is drawn above stays what it was.
    _ENGINES[_pick(rng := random.Random(f"engine {seed}"), _SHARES)](rng, data)
    # Another one.
    data["cluster"]["router"] = random_router(random.Random(f"router {seed}"))
    return data


_SHARES = {
    "vllm": 14, "eager": 2, "layers": 4, "ranks": 2, "experts": 1, "pipeline": 2, "sglang": 8,
    "trtllm": 8,
}  # fmt: skip


def _pick(rng, shares):
    return rng.choices(sorted(shares), [shares[name] for name in sorted(shares)])[0]


def _vllm(rng, data):
    """As drawn."""


def _eager(rng, data):
    data["policy"]["enforce_eager"] = True


def _layers(rng, data):
    """A GPU of which whole layers were measured."""
    data["gpu"], data["policy"]["enforce_eager"] = "rtx_4090", False
    data["policy"]["gpu_memory_utilization"] = 0.95


def _ranks(rng, data):
    """Data-parallel ranks: of 0.33.0 they tell their counts, of 0.19.0 they don't."""
    data["parallelism"] = {"dp": rng.choice([2, 3])}
    data["engine"]["version"] = rng.choice(["0.19.0", "0.33.0"])
    data["gpu"] = rng.choice([data["gpu"], "rtx_4090"])
    data["policy"]["gpu_memory_utilization"] = 0.95


def _experts(rng, data):
    """Ranks in lockstep."""
    data["parallelism"] = {"dp": 2}
    data["llm"], data["gpu"] = "qwen3-30b-a3b", "h200_sxm"
    data["cluster"]["replicas"] = 1


def _pipeline(rng, data):
    data["parallelism"] = {"pp": rng.choice([2, 3])}


def _one_of_the_others(rng, data):
    """Without what only vLLM has; the KV memory keeps its tokens."""
    policy = data["policy"]
    policy.pop("long_prefill_token_threshold", None)
    policy.pop("enable_chunked_prefill", None)
    size = rng.choice([1, 16, 32, 64])
    if "num_gpu_blocks" in policy:
        policy["num_gpu_blocks"] = 1 + policy["num_gpu_blocks"] * policy["block_size"] // size
    return size


def _sglang(rng, data):
    size = _one_of_the_others(rng, data)
    data["engine"] = {"name": "sglang", "version": rng.choice(["0.5.6", "0.5.23"])}
    data["policy"]["sglang"] = {
        "page_size": size,
        "max_prefill_tokens": rng.choice([512, 16384]),
        "schedule_conservativeness": rng.choice([0.3, 1.0]),
        "schedule_policy": rng.choice(["fcfs", "lof", "lpm"]),
        "enable_mixed_chunk": rng.random() < 0.15,
    }


def _trtllm(rng, data):
    size = _one_of_the_others(rng, data)
    version = rng.choice(["1.0.0", "1.2.0", "1.4.0", "1.4.0"])
    data["engine"] = {"name": "trtllm", "version": version}
    policy = data["policy"]
    if version != "1.4.0":
        policy["scheduling_policy"] = "fcfs"
    waits = rng.random() < 0.2
    policy["trtllm"] = {
        "tokens_per_block": size,
        "capacity_scheduler_policy": rng.choice(
            ["GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "MAX_UTILIZATION", "STATIC_BATCH"]
        ),
        "enable_chunked_prefill": rng.random() < 0.5,
        "batch_wait_timeout_iters": 5 if waits else 0,
        "batch_wait_max_tokens_ratio": 0.5 if waits else 0.0,
        "cuda_graph_padding": rng.random() < 0.5,
        "stream_interval": rng.choice([1, 10]),
    }


_ENGINES = {
    "vllm": _vllm,
    "eager": _eager,
    "layers": _layers,
    "ranks": _ranks,
    "experts": _experts,
    "pipeline": _pipeline,
    "sglang": _sglang,
    "trtllm": _trtllm,
}


def random_router(rng):
    """Return what `cluster.router` may be."""
    kind = rng.choice(ROUTERS)
    if kind != "prefix_aware" or rng.random() < 0.3:
        return kind
    return {
        "kind": kind,
        "cache_threshold": rng.choice([0.0, 0.2]),
        "balance_abs_threshold": rng.choice([2, 10]),
        "balance_rel_threshold": rng.choice([1.0, 1.5]),
    }


def _policy(rng):
    policy = {
        "max_num_seqs": rng.choice([2, 8, 64, 256]),
        "max_num_batched_tokens": rng.choice([256, 512, 2048, 8192]),
        "max_model_len": rng.choice([1024, 4096]),
        "block_size": rng.choice([1, 8, 16, 32]),
        "enable_prefix_caching": rng.random() < 0.5,
        "async_scheduling": rng.random() < 0.7,
        "scheduling_policy": rng.choice(["fcfs", "fcfs", "priority"]),
        "enforce_eager": rng.random() < 0.2,
    }
    if policy["max_num_batched_tokens"] >= policy["max_model_len"] and rng.random() < 0.3:
        policy["enable_chunked_prefill"] = False
    if rng.random() < 0.3:
        policy["long_prefill_token_threshold"] = rng.choice([33, 64, 200])
    if rng.random() < 0.6:
        least = 2 + policy["max_model_len"] // policy["block_size"]
        policy["num_gpu_blocks"] = least * rng.choice([1, 1, 2, 4])
    return policy


def _length(rng, high):
    return {"kind": "uniform", "low": 1, "high": high}


def _open_loop(rng):
    spec = {
        "kind": "synthetic",
        "num_requests": rng.choice([20, 60]),
        "arrivals": {"kind": "poisson", "rate": rng.choice([1, 8, 40])},
        "prompt_tokens": _length(rng, 600),
        "output_tokens": _length(rng, 200),
    }
    if rng.random() < 0.5:
        spec["finish"] = "stop"
    if rng.random() < 0.4:
        spec["priorities"] = {"0": 1, "1": 1, "2": 1}
    if rng.random() < 0.5:
        spec["prefixes"] = {
            "num_prefixes": rng.choice([1, 3, 10]),
            "prefix_tokens": rng.choice([16, 100, 333]),
        }
    return spec


def _closed_loop(rng):
    return {
        "kind": "closed_loop",
        "concurrency": rng.choice([1, 4, 16]),
        "num_requests": rng.choice([20, 60]),
        "think_time_s": rng.choice([0.0, 0.01]),
        "prompt_tokens": _length(rng, 600),
        "output_tokens": _length(rng, 200),
    }


def _sessions(rng):
    return {
        "kind": "sessions",
        "arrivals": {"kind": "poisson", "rate": rng.choice([0.5, 4])},
        "num_sessions": rng.choice([4, 12]),
        "turns": rng.choice([1, 3, 6]),
        "system_prompt_tokens": rng.choice([0, 100]),
        "message_tokens": _length(rng, 100),
        "answer_tokens": _length(rng, 100),
        "next_turn": {"kind": "after_answer", "think_time_s": rng.choice([0.0, 0.3])},
    }


_WORKLOADS = {"closed_loop": _closed_loop, "open_loop": _open_loop, "sessions": _sessions}
