"""`EnginePolicy`: the tunables that are searched, compared and exported, in vLLM's spelling."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from twin.strict import Strict

KvCacheDtype = Literal[
    "auto",
    "bfloat16",
    "float16",
    "fp8",
    "fp8_e4m3",
    "fp8_e5m2",
    "int8",
    "fp8_per_token_head",
    "int8_per_token_head",
    "int4_per_token_head",
]
Quantization = Literal["none", "fp8", "int8", "int4"]
Eviction = Literal["lru", "fifo", "lfu", "s3_fifo", "arc", "cost_aware", "ttl"]
Positive = Annotated[int, Field(gt=0, le=10**9)]
Count = Annotated[int, Field(ge=0, le=10**9)]

MAX_GPU_BLOCKS = 10_000_000
"""KV blocks of one replica: more than any GPU holds, and what memory here can follow."""

POLICY_SCHEMA_VERSION: Literal[1] = 1


class SglangPolicy(Strict):
    """What only SGLang has, in its spelling.

    `max_num_seqs` is its max_running_requests, `max_num_batched_tokens` its
    chunked_prefill_size, `gpu_memory_utilization` its mem_fraction_static.
    """

    page_size: Positive = Field(1, description="tokens a KV page")
    max_prefill_tokens: Positive | None = Field(
        None, description="prompt tokens of a batch at which no further request joins"
    )
    schedule_conservativeness: Annotated[float, Field(gt=0)] = Field(
        1.0, description="scales the share of foreseen output that admission reserves"
    )
    schedule_policy: Literal["fcfs", "lof", "lpm"] = Field("fcfs", description="queue order")
    radix_eviction_policy: Literal["lru", "lfu", "slru", "priority"] = Field(
        "lru", description="which tip of the radix tree goes first"
    )
    enable_mixed_chunk: bool = Field(
        False, description="a prefill batch also carries the running requests"
    )
    cuda_graph_max_bs: Positive | None = Field(None, description="largest captured batch")


class TrtllmPolicy(Strict):
    """What only TensorRT-LLM has, in its spelling.

    `max_num_seqs` is its max_batch_size, `max_num_batched_tokens` its max_num_tokens,
    `gpu_memory_utilization` its free_gpu_memory_fraction.
    """

    tokens_per_block: Positive = Field(32, description="tokens a KV block")
    capacity_scheduler_policy: Literal["GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH"] = (
        Field("GUARANTEED_NO_EVICT", description="which requests may hold memory")
    )
    enable_chunked_prefill: bool = Field(False, description="split prompts over steps")
    batch_wait_timeout_iters: Count = Field(
        0, description="most iterations in which new prompts are held back; 0: none"
    )
    batch_wait_max_tokens_ratio: Annotated[float, Field(ge=0, le=1)] = Field(
        0.0, description="share of the token budget from which they are not; 0: none"
    )
    cuda_graph_max_batch_size: Count = Field(0, description="largest captured batch; 0: 128")
    cuda_graph_padding: bool = Field(False, description="pad batches to captured sizes")
    stream_interval: Positive = Field(1, description="tokens a streamed response")
    num_postprocess_workers: Count = Field(
        0, description="processes that turn tokens into responses; 0: the server itself"
    )


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
    eviction: Eviction = Field("lru", description="which cached block goes first")
    eviction_ttl_s: Annotated[float, Field(gt=0, le=1e9)] | None = Field(
        None, description="how long after its last use eviction ttl lets a block be found"
    )
    enforce_eager: bool = Field(False, description="never use CUDA graphs")
    cudagraph_mode: Literal["full_and_piecewise", "piecewise"] = Field(
        "full_and_piecewise", description="whether a step of decodes is one CUDA graph"
    )
    max_cudagraph_capture_size: Positive | None = Field(
        None, description="largest captured batch, tokens; default: the engine's rule"
    )
    sglang: SglangPolicy = Field(SglangPolicy(), description="read when the engine is SGLang")
    trtllm: TrtllmPolicy = Field(TrtllmPolicy(), description="read when it is TensorRT-LLM")

    @model_validator(mode="after")
    def _budget_holds_a_prompt(self) -> "EnginePolicy":
        budget, longest = self.max_num_batched_tokens, self.max_model_len
        if not self.enable_chunked_prefill and budget and longest and budget < longest:
            raise ValueError(
                f"max_num_batched_tokens {budget} is below max_model_len {longest} with chunked "
                "prefill off; raise the budget or enable_chunked_prefill"
            )
        if self.eviction_ttl_s is not None and self.eviction != "ttl":
            raise ValueError(
                f"eviction_ttl_s has no effect under eviction {self.eviction}; "
                "set eviction to ttl or leave it out"
            )
        if budget and self.max_num_seqs and budget < self.max_num_seqs:
            raise ValueError(
                f"max_num_batched_tokens {budget} is below max_num_seqs {self.max_num_seqs}; "
                "raise the budget or lower max_num_seqs"
            )
        return self
