"""Engines, ranks, stages and costs drawn at random for a scenario."""

_SHARES = {
    "vllm": 14, "eager": 2, "layers": 4, "ranks": 2, "experts": 1, "pipeline": 2, "sglang": 8,
    "trtllm": 8,
}  # fmt: skip


def draw_engine(rng, data):
    """Change the engine, the spread or the GPU of a scenario that is vLLM's on one GPU."""
    names = sorted(_SHARES)
    _ENGINES[rng.choices(names, [_SHARES[name] for name in names])[0]](rng, data)


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
