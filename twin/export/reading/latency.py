"""Options that change how long a server takes and that nothing here models, engine by engine."""

from fnmatch import fnmatchcase

from twin.export.options import Value

UNMODELLED: dict[str, dict[str, tuple[str, ...]]] = {
    "vllm": {
        "speculative decoding": ("speculative-config*", "spec-method", "spec-model", "spec-tokens"),
        "serving LoRA adapters": (
            "enable-lora", "lora-modules", "max-loras", "max-lora-rank", "max-cpu-loras",
            "default-mm-loras", "fully-sharded-loras", "specialize-active-lora",
        ),
        "offloading weights to the host": ("cpu-offload-*", "offload-*"),
        "keeping or moving KV outside the GPU": (
            "kv-transfer-config*", "kv-offloading-*", "ec-transfer-config*",
        ),
        "another size or make-up of the KV pool": (
            "kv-cache-memory-bytes", "kv-cache-dtype-skip-layers", "kv-sharing-fast-prefill",
            "prefix-cache-retention-interval", "disable-hybrid-kv-cache-manager",
        ),
        "context parallelism": ("*-context-parallel-size",),
        "several nodes": ("nnodes",),
        "moving experts, or overlapping two batches": ("enable-eplb", "enable-dbo", "ubatch-size"),
        "another scheduler": (
            "scheduler-cls", "max-num-scheduled-tokens", "max-num-active-seqs", "stream-interval",
            "long-prefill-token-threshold-adaptive", "prefill-schedule-interval",
            "performance-mode", "max-num-queued-*", "watermark-config*",
        ),
        "other kernels": (
            "attention-backend", "attention-config*", "moe-backend", "linear-backend",
            "all2all-backend", "kernel-config*", "gdn-prefill-backend", "kda-*-backend",
            "mamba-backend", "monokernel", "disable-custom-all-reduce", "disable-cascade-attn",
        ),
        "another way of compiling": (
            "optimization-level", "compilation-config.*", "cudagraph-capture-sizes",
        ),
        "another number format or form of the network": (
            "dtype", "hf-overrides*", "quantization-config*", "model-impl",
        ),
    },
    "sglang": {
        "speculative decoding": ("speculative-*", "decoupled-spec-*"),
        "serving LoRA adapters": (
            "enable-lora", "lora-paths", "max-lora-rank", "max-loras-per-batch",
            "max-loaded-loras", "enable-lora-overlap-loading", "uno-lora-path", "lora-backend",
        ),
        "offloading weights to the host": ("cpu-offload-gb", "offload-*", "kt-*", "ple-offload-*"),
        "keeping or moving KV outside the GPU": (
            "enable-hierarchical-cache", "enable-hicache", "hicache-*", "enable-lmcache",
            "enable-flexkv",
        ),
        "prefill and decode on servers of their own": ("disaggregation-*",),
        "context parallelism": (
            "attn-cp-size", "*-context-parallel-size", "dcp-size", "enable-prefill-cp",
        ),
        "several nodes": ("nnodes",),
        "data or pipeline parallelism under SGLang": (
            "dp-size", "data-parallel-size", "enable-dp-attention", "attn-dp-size",
            "attention-data-parallel-size", "pp-size", "pipeline-parallel-size",
            "moe-dp-size", "moe-data-parallel-size",
        ),
        "moving experts, or overlapping two batches": (
            "enable-eplb", "enable-two-batch-overlap", "enable-single-batch-overlap",
            "enable-pdmux",
        ),
        "another scheduler": (
            "num-continuous-decode-steps", "enable-dynamic-chunking", "prefill-max-requests",
            "prefill-decode-interval", "enable-prefill-delayer", "scheduler-recv-interval",
            "stream-interval", "max-queued-requests", "retraction-policy",
        ),
        "other kernels": (
            "attention-backend", "*-attention-backend", "moe-runner-backend", "moe-a2a-backend",
            "fp8-gemm-backend", "fp4-gemm-backend", "bf16-gemm-backend", "enable-torch-compile",
            "disable-custom-all-reduce", "enable-flashinfer-allreduce-fusion", "enable-mscclpp",
            "enable-deterministic-inference", "cuda-graph-bs-*", "disable-cuda-graph-padding",
        ),
        "another number format or form of the network": (
            "dtype", "json-model-override-args", "quantize-and-serve", "dllm-algorithm",
            "model-impl",
        ),
    },
    "trtllm": {
        "speculative decoding": ("speculative_config*",),
        "serving LoRA adapters": ("enable_lora", "lora_config*", "peft_cache_config*"),
        "keeping or moving KV outside the GPU": (
            "cache_transceiver_config*", "kv_connector_config*", "kv_cache_config.host_cache_size",
        ),
        "another size or make-up of the KV pool": (
            "kv_cache_config.max_attention_window", "kv_cache_config.max_gpu_total_bytes",
            "kv_cache_config.block_reuse_config",
        ),
        "context parallelism": ("context_parallel_size", "cp_config*"),
        "data or pipeline parallelism under TensorRT-LLM": (
            "pipeline_parallel_size", "enable_attention_dp", "attention_dp_config*",
            "moe_tensor_parallel_size", "moe_cluster_parallel_size",
        ),
        "another scheduler": (
            "scheduler_config.dynamic_batch_config*", "scheduler_config.context_chunking_policy",
            "batch_wait_timeout_ms", "max_beam_width",
        ),
        "other kernels": (
            "attn_backend", "moe_config*", "allreduce_strategy", "torch_compile_config*",
            "sparse_attention_config*", "nvfp4_gemm_config*", "enable_min_latency",
            "backend",
        ),
        "another number format or form of the network": ("dtype", "force_dynamic_quantization"),
    },
}  # fmt: skip
"""What is not modelled, and the options that ask for it: names, `*` standing for anything."""

_USUAL = {
    "dtype": {"auto", "bfloat16", "float16", "half"},
    "optimization-level": {"2", "3"},
    "backend": {"pytorch"},
    "model-impl": {"auto"},
    "performance-mode": {"balanced"},
}
"""Values that change nothing from what is simulated; of other options those that turn them off."""

_OFF = {"", "0", "0.0", "auto", "false", "none", "null", "{}", "[]"}
_SIZES = ("-size", "_size", "nnodes", "interval", "steps", "width")


def unmodelled(engine: str, name: str, value: Value) -> str | None:
    """Return what an option asks for that would change latencies and is not modelled, or None.

    Args:
        engine: whose option.
        name: flat, as its list has it.
        value: one that turns the option off, or that is simulated anyway, asks for nothing.
    """
    text = str(value).lower()
    one = name.endswith(_SIZES) and text == "1"
    if one or text in _USUAL.get(name, _OFF):
        return None
    for what, patterns in UNMODELLED[engine].items():
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            return what
    return None
