"""Options of TensorRT-LLM's LLM API, with the ranges of its pydantic models and of its runtime.

Source: TensorRT-LLM main of autumn 2026 (1.4), `tensorrt_llm/llmapi/llm_args.py`: `TorchLlmArgs`,
`KvCacheConfig`, `SchedulerConfig`, `DecodeCudaGraphConfig`. Unknown keys are refused there too.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, field_validator, model_validator

from twin.export.options import EngineOptions

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]


class TrtllmKvCache(EngineOptions):
    """`kv_cache_config`."""

    enable_block_reuse: bool | None = None
    free_gpu_memory_fraction: Annotated[float, Field(gt=0, lt=1)] | None = None
    max_tokens: Positive | None = None
    tokens_per_block: Positive | None = None
    dtype: Literal["auto", "float16", "bfloat16", "fp8"] | None = None

    @field_validator("tokens_per_block")
    @classmethod
    def _power_of_two(cls, tokens: int | None) -> int | None:
        """Its documentation of KV cache reuse asks for one, and its kernels count on it."""
        if tokens is not None and tokens & (tokens - 1):
            raise ValueError(f"{tokens} is no power of two")
        return tokens


class TrtllmScheduler(EngineOptions):
    """`scheduler_config`."""

    capacity_scheduler_policy: (
        Literal["GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH"] | None
    ) = None
    waiting_queue_policy: Literal["fcfs", "priority"] | None = None


class TrtllmCudaGraphs(EngineOptions):
    """`cuda_graph_config`; the key set to null turns graphs off."""

    max_batch_size: Count | None = None
    enable_padding: bool | None = None


class TrtllmOptions(EngineOptions):
    """A policy's options, as `trtllm-serve --config` takes them."""

    model_config = ConfigDict(protected_namespaces=())

    tensor_parallel_size: Positive | None = None
    moe_expert_parallel_size: Positive | None = None
    max_seq_len: Positive | None = None
    max_batch_size: Positive | None = None
    max_num_tokens: Positive | None = None
    enable_chunked_prefill: bool | None = None
    kv_cache_config: TrtllmKvCache | None = None
    scheduler_config: TrtllmScheduler | None = None
    cuda_graph_config: TrtllmCudaGraphs | None = None
    disable_overlap_scheduler: bool | None = None
    batch_wait_timeout_iters: Count | None = None
    batch_wait_max_tokens_ratio: Annotated[float, Field(ge=0, le=1)] | None = None
    stream_interval: Positive | None = None
    num_postprocess_workers: Count | None = None

    @model_validator(mode="after")
    def _go_together(self) -> "TrtllmOptions":
        """Refuse a step smaller than a block: with chunked prefill no long prompt would advance."""
        block = self.kv_cache_config.tokens_per_block if self.kv_cache_config else None
        budget = self.max_num_tokens
        if self.enable_chunked_prefill and budget and block and budget < block:
            raise ValueError(
                f"max_num_tokens {budget} is below tokens_per_block {block} with chunked prefill on"
            )
        return self

    def as_dict(self) -> dict[str, object]:
        """Return what is set; `cuda_graph_config` given as null is kept: it turns graphs off."""
        data = super().as_dict()
        if "cuda_graph_config" in self.model_fields_set and self.cuda_graph_config is None:
            data["cuda_graph_config"] = None
        return data
