"""Scenarios drawn at random over what the engines must agree on."""

import random

from tests.properties.random_engines import draw_engine

LLM = "llama-3.1-8b"
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
        "llm": LLM,
        "gpu": rng.choice(["h100_sxm", "a100_sxm", "l40s"]),
        "engine": {"name": "vllm", "version": "0.33.0"},
        "policy": policy,
        "workload": _WORKLOADS[rng.choice(sorted(_WORKLOADS))](rng),
        "seed": seed,
        "cluster": {"replicas": rng.choice([1, 1, 2, 4])},
    }
    if rng.random() < 0.2:
        data["horizon_s"] = rng.uniform(0.5, 5)
    # Streams of their own: what one draws leaves the rest of a seed's scenario as it is.
    draw_engine(random.Random(f"engine {seed}"), data)
    data["cluster"] = random_cluster(random.Random(f"cluster {seed}"), data["cluster"]["replicas"])
    if data["llm"] != LLM:  # few GPUs hold the others
        for pool in data["cluster"].get("pools", ()):
            pool.pop("gpu", None)
    clients = random_clients(random.Random(f"clients {seed}"))
    if clients is not None:
        data["clients"] = clients
    draw_eviction(random.Random(f"eviction {seed}"), data)
    layout = random_layout(random.Random(f"layout {seed}"))
    if layout is not None and "rtx_4090" not in str(data):  # measured layers have one layout
        data["kv_layout"] = layout
    return data


def draw_eviction(rng, data):
    """Change which cached block goes first, where the engine has a choice."""
    policy, engine = data["policy"], data["engine"]["name"]
    if engine == "sglang":
        policy["sglang"]["radix_eviction_policy"] = rng.choice(["lru", "lfu", "slru", "priority"])
    if engine != "vllm" or rng.random() < 0.4:
        return
    policy["eviction"] = rng.choice(["fifo", "lfu", "s3_fifo", "arc", "cost_aware", "ttl", "ttl"])
    if policy["eviction"] == "ttl":
        policy["eviction_ttl_s"] = rng.choice([0.05, 0.5, 3.0])


def random_layout(rng):
    """Return what `kv_layout` may be, or None: as kernels were measured."""
    if rng.random() < 0.7:
        return None
    return {
        "pools": rng.choice(["per_layer", "cross_layer"]),
        "order": rng.choice(["compact", "scattered"]),
    }


def random_cluster(rng, replicas):
    """Return a cluster that starts with so many replicas; half of them have quiet lives."""
    cluster = {"replicas": replicas, "router": random_router(rng)}
    if rng.random() < 0.5:
        return cluster
    cluster["startup_s"] = rng.choice([0.0, 0.01, 0.3])
    if rng.random() < 0.7:
        cluster["failures"] = random_failures(rng, replicas)
    scaler = _autoscaler(rng, replicas) if rng.random() < 0.4 else None
    if rng.random() < 0.4:
        del cluster["replicas"]
        return cluster | {"pools": _pools(rng, replicas, scaler)}
    return cluster if scaler is None else cluster | {"autoscaler": scaler}


def random_failures(rng, replicas):
    """Return what `cluster.failures` may be: all of them early, since runs are short."""
    scheduled = [
        {
            "at_s": rng.choice([0.0, rng.uniform(0, 3)]),
            "replica": rng.randrange(replicas),
            "kind": rng.choice(["crash", "drain"]),
            **({"down_s": rng.choice([0.0, 0.2, 2.0])} if rng.random() < 0.8 else {}),
        }
        for _ in range(rng.choice([0, 1, 3, 6]))
    ]
    failures = {
        "scheduled": scheduled,
        "in_flight": rng.choice(["requeue", "fail"]),
        "max_requeues": rng.choice([0, 1, 10]),
    }
    if rng.random() < 0.4:
        failures["random"] = {"mtbf_s": rng.choice([0.5, 3.0]), "mttr_s": rng.choice([0.0, 0.5])}
    return failures


def _autoscaler(rng, replicas):
    metric = rng.choice(["in_flight", "waiting", "kv_usage"])
    return {
        "metric": metric,
        "target": rng.choice([0.02, 0.5]) if metric == "kv_usage" else rng.choice([0.5, 2, 8]),
        "min_replicas": rng.choice([0, 1]),
        "max_replicas": replicas + rng.choice([0, 2]),
        "interval_s": rng.choice([0.05, 0.3]),
        "scale_up_stabilization_s": rng.choice([0.0, 0.2]),
        "scale_down_stabilization_s": rng.choice([0.0, 0.5]),
    }


def _pools(rng, replicas, scaler):
    """Two kinds of replicas, the second with small batches."""
    first = {"replicas": replicas, "name": "first"}
    if scaler is not None:
        first["autoscaler"] = scaler
    second = {"gpu": rng.choice(["h100_sxm", "l40s"]), "policy": {"max_num_seqs": 4}}
    return [first, second]


def random_clients(rng, *, surely=False):
    """Return what `clients` may be, or None: they wait for ever."""
    if not surely and rng.random() < 0.5:
        return None
    clients = {
        "abort_on_disconnect": rng.random() < 0.5,
        "retry": _retry(rng),
        "idempotency": rng.choice(["none", "key"]),
    }
    if rng.random() < 0.8:
        clients["timeout_s"] = rng.choice([0.3, 1.0, 3.0])
    if rng.random() < 0.6:
        clients["ttft_timeout_s"] = rng.choice([0.02, 0.1, 0.3])
    if rng.random() < 0.3:
        clients["budget"] = {"max_tokens": rng.choice([4, 10, 100]), "token_ratio": 0.5}
    return clients


def _retry(rng):
    kind = rng.choice(["none", "fixed", "exponential", "adaptive"])
    if kind == "none":
        return {"kind": kind}
    jitters = ["none", "full", "equal"] + ["decorrelated"] * (kind != "fixed")
    return {
        "kind": kind,
        "max_attempts": rng.choice([1, 2, 4]),
        "delay_s": rng.choice([0.0, 0.05, 0.5]),
        "jitter": rng.choice(jitters),
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
