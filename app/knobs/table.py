"""`KNOBS`: everything that can be turned on screen, in one table and in the order it is shown."""

from app.knobs.knob import Knob, Value
from hwmodels.gpus import GPUS
from twin.llm.models import MODELS

SETUP, LOAD, OBJECTIVE, POLICY = "Model and GPUs", "Load", "Objective", "Policy"
GROUPS = (SETUP, LOAD, OBJECTIVE, POLICY)

_VLLM, _SGLANG, _TRTLLM = frozenset({"vllm"}), frozenset({"sglang"}), frozenset({"trtllm"})


def _powers(low: int, high: int) -> tuple[Value, ...]:
    return (None, *(2**n for n in range(low.bit_length() - 1, high.bit_length())))


_SETUP = (
    Knob("llm", "llm", SETUP, "choice", "the network", tuple(sorted(MODELS)), {}),
    Knob("gpu", "gpu", SETUP, "choice", "the GPU", tuple(sorted(GPUS))),
    Knob(
        "engine.name",
        "engine",
        SETUP,
        "choice",
        "the serving engine; its default version",
        ("vllm", "sglang", "trtllm"),
        dict.fromkeys(("vllm", "sglang", "trtllm"), "engine"),
    ),
    Knob("parallelism.tp", "tp", SETUP, "choice", "GPUs a layer is cut over", (1, 2, 4, 8)),
    Knob("cluster.replicas", "replicas", SETUP, "whole", "engines behind the router",
         (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)),
)  # fmt: skip

_LOAD = (
    Knob("workload.arrivals.rate", "rate", LOAD, "number", "requests or sessions that arrive",
         unit="1/s", workloads=("synthetic", "sessions"), low=0.001),
    Knob("workload.rate_scale", "rate_scale", LOAD, "number",
         "times the trace's arrival rate: 2 halves every gap", workloads=("trace",), low=0.001),
    Knob("workload.concurrency", "concurrency", LOAD, "whole", "requests in flight",
         (1, 2, 4, 8, 16, 32, 64, 128, 256, 512), workloads=("closed_loop",)),
    Knob("workload.num_requests", "requests", LOAD, "whole", "requests in all",
         (300, 600, 1500, 3000, 10000), workloads=("synthetic", "closed_loop")),
    Knob("seed", "seed", LOAD, "choice", "of everything drawn at random", (0, 1, 2, 3, 4)),
)  # fmt: skip

_OBJECTIVE = (
    Knob("slo.ttft_s", "ttft", OBJECTIVE, "number", "longest time to first token; none: not asked",
         (None,), unit="s"),
    Knob("slo.tpot_s", "tpot", OBJECTIVE, "number", "longest time per output token; none: not "
         "asked", (None,), unit="s"),
    Knob("slo.percentile", "pct", OBJECTIVE, "choice", "of requests that have to keep it",
         (50.0, 90.0, 95.0, 99.0)),
)  # fmt: skip

_POLICY = (
    Knob("policy.max_num_seqs", "seqs", POLICY, "whole", "most requests running at once",
         _powers(8, 2048), {"sglang": "max_running_requests", "trtllm": "max_batch_size"}),
    Knob("policy.max_num_batched_tokens", "tokens", POLICY, "whole", "token budget of a step",
         _powers(256, 32768), {"sglang": "chunked_prefill_size", "trtllm": "max_num_tokens"}),
    Knob("policy.gpu_memory_utilization", "util", POLICY, "choice",
         "share of GPU memory the engine may use", (None, 0.8, 0.85, 0.88, 0.9, 0.92, 0.95),
         {"sglang": "mem_fraction_static", "trtllm": "free_gpu_memory_fraction"}),
    Knob("policy.max_model_len", "len", POLICY, "whole", "longest context, prompt and answer",
         _powers(2048, 131072), {"sglang": "context_length", "trtllm": "max_seq_len"}),
    Knob("policy.kv_cache_dtype", "kv", POLICY, "choice",
         "number format of the KV cache; 8 bits halve it",
         ("auto", "fp8", "int8", "fp8_per_token_head", "int8_per_token_head",
          "int4_per_token_head")),
    Knob("policy.quantization", "quant", POLICY, "choice",
         "weights quantised at load; default: as the checkpoint", (None, "fp8", "int8", "int4")),
    Knob("policy.block_size", "block", POLICY, "choice", "tokens a KV block",
         (8, 16, 32, 64, 128), engines=_VLLM),
    Knob("policy.sglang.page_size", "page", POLICY, "choice", "tokens a KV page",
         (1, 16, 32, 64, 128), engines=_SGLANG),
    Knob("policy.trtllm.tokens_per_block", "tpb", POLICY, "choice", "tokens a KV block",
         (32, 64, 128), engines=_TRTLLM),
    Knob("policy.enable_prefix_caching", "prefix", POLICY, "flag",
         "reuse KV blocks of equal prefixes"),
    Knob("policy.eviction", "evict", POLICY, "choice",
         "which cached block goes first; the engine itself has lru alone",
         ("lru", "fifo", "lfu", "s3_fifo", "arc", "cost_aware", "ttl"), engines=_VLLM),
    Knob("policy.scheduling_policy", "sched", POLICY, "choice", "queue order",
         ("fcfs", "priority")),
    Knob("policy.long_prefill_token_threshold", "long", POLICY, "choice",
         "most prompt tokens of one request in a step; 0: no cap",
         (0, 256, 512, 1024, 2048, 4096), engines=_VLLM),
    Knob("policy.trtllm.capacity_scheduler_policy", "cap", POLICY, "choice",
         "which requests may hold memory",
         ("GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH"), engines=_TRTLLM),
    Knob("policy.async_scheduling", "async", POLICY, "choice", "schedule one step ahead",
         (None, True, False)),
    Knob("policy.enforce_eager", "eager", POLICY, "flag", "never use CUDA graphs"),
)  # fmt: skip

KNOBS: tuple[Knob, ...] = (*_SETUP, *_LOAD, *_OBJECTIVE, *_POLICY)
BY_SHORT: dict[str, Knob] = {knob.short: knob for knob in KNOBS}
BY_KEY: dict[str, Knob] = {knob.key: knob for knob in KNOBS}
