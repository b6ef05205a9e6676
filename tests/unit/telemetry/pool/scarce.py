"""Scenarios with too little KV for their load."""

from twin.load.scenario_file import scenario_from

ENGINES = {
    "vllm": {},
    "vllm, no cache": {"policy": {"enable_prefix_caching": False, "async_scheduling": False}},
    "sglang": {
        "engine": {"name": "sglang"},
        "policy": {
            "num_gpu_blocks": 1600,
            "block_size": 1,
            "sglang": {"schedule_conservativeness": 0.1},
        },
    },
    "trtllm": {
        "engine": {"name": "trtllm"},
        "policy": {"trtllm": {"capacity_scheduler_policy": "MAX_UTILIZATION"}},
    },
    "ranks in lockstep": {
        "llm": "qwen3-30b-a3b",
        "parallelism": {"dp": 2, "tp": 1, "ep": 2},
        "policy": {"num_gpu_blocks": 70},
    },
    "stages": {"parallelism": {"pp": 2}},
}


def scarce(**changes):
    """Return a scenario of 24 requests that share prefixes, on a hundred blocks."""
    policy = {"num_gpu_blocks": 100, "max_model_len": 1024, "block_size": 16}
    data = {
        "schema_version": 1,
        "llm": "llama-3.1-8b",
        "gpu": "h100_sxm",
        "workload": {
            "kind": "synthetic",
            "arrivals": {"kind": "poisson", "rate": 50},
            "num_requests": 24,
            "prompt_tokens": {"kind": "uniform", "low": 50, "high": 300},
            "output_tokens": {"kind": "uniform", "low": 50, "high": 200},
            "prefixes": {"num_prefixes": 2, "prefix_tokens": 64},
        },
        **{key: value for key, value in changes.items() if key != "policy"},
    }
    return scenario_from({**data, "policy": {**policy, **changes.get("policy", {})}})
