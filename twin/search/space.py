"""`SPACE`: everything that a search can turn, in one table."""

from collections.abc import Mapping
from typing import Any, get_args

from twin.cluster import MAX_REPLICAS, ROUTER_KINDS
from twin.llm.quantization import KV_DTYPE_ENGINES
from twin.policy import EnginePolicy
from twin.search.knob import Choices, Knob, Powers, Span, Value

VLLM, SGLANG, TRTLLM = frozenset({"vllm"}), frozenset({"sglang"}), frozenset({"trtllm"})
ENGINES = VLLM | SGLANG | TRTLLM
NONE: frozenset[str] = frozenset()

_ON = (True,)
_OFF = (False,)
_SEVERAL = tuple(range(2, MAX_REPLICAS + 1))


def _names(field: str) -> tuple[Value, ...]:
    """Return the values that a field of `EnginePolicy` may have, None first where it may be."""

    def walk(annotation: Any) -> tuple[Value, ...]:
        found: tuple[Value, ...] = ()
        for part in get_args(annotation):
            found += (None,) if part is type(None) else walk(part) or (part,)
        return found

    values = walk(EnginePolicy.model_fields[field].annotation)
    return tuple(sorted(values, key=lambda value: value is not None))


# 16 bits under another name, FP8 under its longer one, and an FP8 with a bit of precision less
# for a range that KV does not need: nothing to gain by any of them.
_KV_ALIASES = ("bfloat16", "float16", "fp8_e4m3", "fp8_e5m2")
_KV_DTYPES = tuple(name for name in _names("kv_cache_dtype") if name not in _KV_ALIASES)
_EVICTIONS = _names("eviction")
_LIFETIMES_S = (30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


def _row(
    key: str,
    domain: Choices | Powers | Span,
    engines: frozenset[str],
    about: str,
    needs: Mapping[str, tuple[Value, ...]] | None = None,
    **more: Any,
) -> Knob:
    return Knob(key, domain, engines, about, needs or {}, **more)


_MEMORY = (
    _row("policy.block_size", Powers(16, 128), VLLM, "tokens a KV block"),
    _row(
        "policy.gpu_memory_utilization",
        Span(0.80, 0.95, 0.01),
        ENGINES,
        "share of GPU memory the engine may use",
    ),
    _row(
        "policy.kv_cache_dtype",
        Choices(_KV_DTYPES),
        ENGINES,
        "number format of the KV cache",
        lossy=True,
        only={name: KV_DTYPE_ENGINES[str(name)] for name in _KV_DTYPES},
    ),
    _row(
        "policy.quantization",
        Choices(tuple(name for name in _names("quantization") if name != "none")),
        ENGINES,
        "number format of the weights; int8 and int4 need a checkpoint made so",
        lossy=True,
        # TensorRT-LLM's PyTorch backend has no INT8 weights and activations.
        only={"int8": VLLM | SGLANG},
    ),
    _row(
        "policy.enable_prefix_caching",
        Choices((True, False)),
        ENGINES,
        "reuse KV blocks of equal prefixes",
    ),
    _row(
        "policy.eviction",
        Choices(_EVICTIONS),
        VLLM,
        "which cached block goes first",
        {"policy.enable_prefix_caching": _ON},
        only={name: NONE for name in _EVICTIONS if name != "lru"},
    ),
    _row(
        "policy.eviction_ttl_s",
        Choices(_LIFETIMES_S),
        VLLM,
        "how long after its last use a cached block can be found",
        {"policy.eviction": ("ttl",)},
        only=dict.fromkeys(_LIFETIMES_S, NONE),
    ),
)

_SCHEDULING = (
    _row("policy.max_num_seqs", Powers(8, 2048), ENGINES, "most requests running at once"),
    _row("policy.max_num_batched_tokens", Powers(256, 32768), ENGINES, "token budget of a step"),
    _row(
        "policy.long_prefill_token_threshold",
        Choices((0, 256, 512, 1024, 2048, 4096, 8192)),
        VLLM,
        "most prompt tokens of one request in a step",
        {"policy.enable_chunked_prefill": _ON},
    ),
    _row(
        "policy.scheduling_policy",
        Choices(("fcfs", "priority")),
        ENGINES,
        "queue order; priority heeds what requests ask for",
    ),
    _row(
        "policy.watermark",
        Span(0.0, 0.1, 0.01),
        VLLM,
        "share of blocks kept free at admission",
    ),
    _row(
        "policy.scheduler_reserve_full_isl",
        Choices((True, False)),
        VLLM,
        "admit only when the whole prompt fits",
    ),
    _row("policy.async_scheduling", Choices((True, False)), ENGINES, "schedule one step ahead"),
)

_GRAPHS = (
    _row(
        "policy.enforce_eager",
        Choices((False, True)),
        ENGINES,
        "no CUDA graphs: the host launches every operation of a step",
    ),
    _row(
        "policy.cudagraph_mode",
        Choices(("full_and_piecewise", "piecewise")),
        VLLM,
        "whether a step of decodes is one CUDA graph",
        {"policy.enforce_eager": _OFF},
    ),
    _row(
        "policy.max_cudagraph_capture_size",
        Powers(64, 2048),
        VLLM,
        "largest captured batch, tokens",
        {"policy.enforce_eager": _OFF},
    ),
)

_SGLANG = (
    _row("policy.sglang.page_size", Choices((1, 16, 32, 64, 128)), SGLANG, "tokens a KV page"),
    _row(
        "policy.sglang.max_prefill_tokens",
        Powers(4096, 65536),
        SGLANG,
        "prompt tokens of a batch at which no further request joins",
    ),
    _row(
        "policy.sglang.schedule_conservativeness",
        Span(0.3, 1.5, 0.1),
        SGLANG,
        "scales the share of foreseen output that admission reserves",
    ),
    _row(
        "policy.sglang.schedule_policy",
        Choices(("fcfs", "lof", "lpm")),
        SGLANG,
        "queue order: first come, longest output or longest cached prefix",
        {"policy.scheduling_policy": ("fcfs",)},
    ),
    _row(
        "policy.sglang.radix_eviction_policy",
        Choices(("lru", "lfu", "slru", "priority")),
        SGLANG,
        "which tip of the radix tree goes first",
        {"policy.enable_prefix_caching": _ON},
    ),
    _row(
        "policy.sglang.enable_mixed_chunk",
        Choices((False, True)),
        SGLANG,
        "a prefill batch also carries the running requests",
    ),
    _row(
        "policy.sglang.cuda_graph_max_bs",
        Powers(8, 1024),
        SGLANG,
        "largest captured batch",
        {"policy.enforce_eager": _OFF},
    ),
)

_TRTLLM = (
    _row("policy.trtllm.tokens_per_block", Powers(32, 128), TRTLLM, "tokens a KV block"),
    _row(
        "policy.trtllm.capacity_scheduler_policy",
        Choices(("GUARANTEED_NO_EVICT", "MAX_UTILIZATION")),
        TRTLLM,
        "which requests may hold memory",
    ),
    _row(
        "policy.trtllm.enable_chunked_prefill",
        Choices((False, True)),
        TRTLLM,
        "split prompts over steps",
    ),
    _row(
        "policy.trtllm.batch_wait_timeout_iters",
        Choices((0, 4, 8, 16, 32, 64)),
        TRTLLM,
        "most iterations in which new prompts are held back",
    ),
    _row(
        "policy.trtllm.batch_wait_max_tokens_ratio",
        Span(0.1, 0.9, 0.1),
        TRTLLM,
        "share of the token budget from which they are not",
        {"policy.trtllm.batch_wait_timeout_iters": (4, 8, 16, 32, 64)},
    ),
    _row(
        "policy.trtllm.cuda_graph_max_batch_size",
        Powers(32, 2048),
        TRTLLM,
        "largest captured batch",
        {"policy.enforce_eager": _OFF},
    ),
    _row(
        "policy.trtllm.cuda_graph_padding",
        Choices((False, True)),
        TRTLLM,
        "pad batches to captured sizes",
        {"policy.enforce_eager": _OFF},
    ),
    _row(
        "policy.trtllm.stream_interval",
        Choices((1, 2, 4, 8, 16)),
        TRTLLM,
        "tokens a streamed response",
    ),
    _row(
        "policy.trtllm.num_postprocess_workers",
        Choices((0, 1, 2, 4)),
        TRTLLM,
        "processes that turn tokens into responses",
    ),
)

_CLUSTER = (
    _row("parallelism.tp", Powers(1, 8), ENGINES, "GPUs a layer is cut over"),
    _row("parallelism.pp", Powers(1, 8), VLLM, "pipeline stages"),
    _row("cluster.replicas", Span(1, 64, 1), ENGINES, "replicas"),
    _row(
        "cluster.router",
        Choices(ROUTER_KINDS),
        ENGINES,
        "who sends requests to which replica; it stands before the engines",
        {"cluster.replicas": _SEVERAL},
    ),
    _row(
        "clients.retry.kind",
        Choices(("none", "fixed", "exponential", "adaptive")),
        ENGINES,
        "what clients do that gave up; theirs, not the engine's",
    ),
)

SPACE: tuple[Knob, ...] = (*_CLUSTER, *_MEMORY, *_SCHEDULING, *_GRAPHS, *_SGLANG, *_TRTLLM)
"""All knobs; each stands after those that it needs."""
