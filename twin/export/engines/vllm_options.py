"""Options of `vllm serve`, with the ranges that its configuration classes demand.

Source: vLLM 0.33.0, `vllm/config/{cache,scheduler,parallel,compilation}.py` and
`vllm/model_executor/layers/quantization/__init__.py`. A block is a multiple of 16 tokens for
FlashAttention's kernels (`vllm/v1/attention/backends/flash_attn.py`).
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from twin.export.options import EngineOptions

Positive = Annotated[int, Field(ge=1)]

VllmKvDtype = Literal[
    "auto", "float16", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2",
    "int4_per_token_head", "int8_per_token_head", "fp8_per_token_head",
]  # fmt: skip
VllmQuantization = Literal["fp8", "fp8_per_tensor", "fp8_per_block", "fp8_per_channel"]


class VllmCompilation(EngineOptions):
    """What a policy says of compilation."""

    cudagraph_mode: Literal["PIECEWISE", "FULL_AND_PIECEWISE"]


class VllmOptions(EngineOptions):
    """A policy's options, as `vllm serve --config` takes them."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    model: Annotated[str, Field(pattern=r"^[^-\s]\S*$")] | None = None
    tensor_parallel_size: Positive | None = None
    pipeline_parallel_size: Positive | None = None
    data_parallel_size: Positive | None = None
    enable_expert_parallel: bool | None = None
    max_model_len: Positive | None = None
    max_num_seqs: Positive | None = None
    max_num_batched_tokens: Positive | None = None
    block_size: Annotated[int, Field(ge=16, le=1024, multiple_of=16)] | None = None
    num_gpu_blocks_override: Annotated[int, Field(ge=2)] | None = None
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = None
    kv_cache_dtype: VllmKvDtype | None = None
    quantization: VllmQuantization | None = None
    enable_prefix_caching: bool | None = None
    enable_chunked_prefill: bool | None = None
    long_prefill_token_threshold: Annotated[int, Field(ge=0)] | None = None
    scheduling_policy: Literal["fcfs", "priority"] | None = None
    scheduler_reserve_full_isl: bool | None = None
    watermark: Annotated[float, Field(ge=0, lt=1)] | None = None
    async_scheduling: bool | None = None
    enforce_eager: bool | None = None
    compilation_config: VllmCompilation | None = None
    max_cudagraph_capture_size: Positive | None = None

    @model_validator(mode="after")
    def _go_together(self) -> "VllmOptions":
        """Refuse what `SchedulerConfig.verify_max_model_len` refuses."""
        budget, longest = self.max_num_batched_tokens, self.max_model_len
        if budget and self.max_num_seqs and budget < self.max_num_seqs:
            raise ValueError(
                f"max-num-batched-tokens {budget} is below max-num-seqs {self.max_num_seqs}"
            )
        if self.enable_chunked_prefill is False and budget and longest and budget < longest:
            raise ValueError(
                f"max-num-batched-tokens {budget} is below max-model-len {longest} with chunked "
                "prefill off"
            )
        threshold = self.long_prefill_token_threshold
        if threshold and longest and threshold > longest:
            raise ValueError(
                f"long-prefill-token-threshold {threshold} is above max-model-len {longest}"
            )
        return self
