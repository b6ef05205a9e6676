"""A scenario whose replicas are of two kinds."""

POOLED = {
    "schema_version": 1,
    "llm": "llama-3.1-8b",
    "gpu": "h100_sxm",
    "workload": {
        "kind": "closed_loop",
        "concurrency": 4,
        "num_requests": 8,
        "prompt_tokens": {"kind": "fixed", "value": 100},
        "output_tokens": {"kind": "fixed", "value": 10},
    },
    "cluster": {
        "pools": [
            {"name": "small", "gpu": "l40s", "replicas": 1},
            {"name": "large", "gpu": "h200_sxm", "replicas": 1},
        ]
    },
}
