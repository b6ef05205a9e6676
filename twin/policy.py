"""`EnginePolicy`: the tunables that are searched, compared and exported, in vLLM's spelling."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from twin.strict import Strict

KvCacheDtype = Literal["auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2", "int8"]
Quantization = Literal["none", "fp8", "int8", "int4"]
Positive = Annotated[int, Field(gt=0, le=10**9)]
Count = Annotated[int, Field(ge=0, le=10**9)]

MAX_GPU_BLOCKS = 10_000_000
"""KV blocks of one replica: more than any GPU holds, and what memory here can follow."""

POLICY_SCHEMA_VERSION: Literal[1] = 1


class EnginePolicy(Strict):
    """What an operator may turn; None means the engine's own default for that version and GPU."""

    schema_version: Literal[1] = POLICY_SCHEMA_VERSION
    max_num_seqs: Positive | None = Field(None, description="most requests running at once")
    max_num_batched_tokens: Positive | None = Field(None, description="token budget of a step")
    max_model_len: Positive | None = Field(
        None, description="longest context, prompt and answer; default: the model's own"
    )
    block_size: Annotated[int, Field(gt=0, le=1024)] = Field(16, description="tokens a KV block")
    num_gpu_blocks: Annotated[int, Field(gt=0, le=MAX_GPU_BLOCKS)] | None = Field(
        None, description="KV blocks; default: what the memory budget leaves"
    )
    gpu_memory_utilization: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="share of GPU memory the engine may use"
    )
    kv_cache_dtype: KvCacheDtype = Field("auto", description="auto: 16 bits, whatever the weights")
    quantization: Quantization | None = Field(
        None, description="weight quantisation applied at load; default: as the checkpoint"
    )
    enable_prefix_caching: bool = Field(True, description="reuse KV blocks of equal prefixes")
    enable_chunked_prefill: bool = Field(True, description="split prompts over steps")
    long_prefill_token_threshold: Count = Field(
        0, description="most prompt tokens of one request in a step; 0: no cap"
    )
    scheduling_policy: Literal["fcfs", "priority"] = Field("fcfs", description="queue order")
    scheduler_reserve_full_isl: bool = Field(
        True, description="admit only when the whole prompt fits"
    )
    watermark: Annotated[float, Field(ge=0, lt=1)] = Field(
        0.0, description="share of blocks kept free at admission"
    )
    async_scheduling: bool | None = Field(
        None, description="schedule one step ahead; default: by engine version"
    )
    eviction: Literal["lru"] = Field("lru", description="which cached block goes first")
    enforce_eager: bool = Field(False, description="never use CUDA graphs")

    @model_validator(mode="after")
    def _budget_holds_a_prompt(self) -> "EnginePolicy":
        budget, longest = self.max_num_batched_tokens, self.max_model_len
        if not self.enable_chunked_prefill and budget and longest and budget < longest:
            raise ValueError(
                f"max_num_batched_tokens {budget} is below max_model_len {longest} with chunked "
                "prefill off; raise the budget or enable_chunked_prefill"
            )
        if budget and self.max_num_seqs and budget < self.max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens {budget} is below max_num_seqs {self.max_num_seqs}; "
                "raise the budget or lower max_num_seqs"
            )
        return self
