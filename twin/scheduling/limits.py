"""`SchedulerLimits`: every number a scheduler decides by."""

from dataclasses import dataclass, fields

from twin.errors import InputError
from twin.paging.eviction.setup import DEFAULT_PARITY_TOKENS, DEFAULT_TTL_S
from twin.request import Request

_POSITIVE = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_model_len",
    "block_size",
    "num_gpu_blocks",
    "pipeline_stages",
)


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """The policy of one engine with every default resolved, in vLLM's spelling.

    Attributes:
        max_num_seqs: most requests running at once.
        max_num_batched_tokens: token budget of a step.
        max_model_len: longest context, tokens of prompt and answer.
        block_size: tokens a KV block.
        num_gpu_blocks: KV blocks, the null block included.
        enable_prefix_caching: reuse the blocks of equal prefixes.
        enable_chunked_prefill: a prompt may be split over steps.
        long_prefill_token_threshold: most tokens of one request in a step while others are
            there; 0: no cap.
        scheduling_policy: `fcfs` or `priority`.
        scheduler_reserve_full_isl: admit only when all known tokens fit.
        watermark: share of `num_gpu_blocks` kept free at admission.
        async_scheduling: schedule a step before the one before it is processed.
        eviction: which free block is handed out first.
        eviction_ttl_s: how long after its last use `ttl` lets a block be found.
        attention_parity_tokens: context at which the attention of a token costs as much as the
            rest of the network, for `cost_aware`.
        pipeline_stages: groups of GPUs that a step passes one after another.

    Raises:
        InputError: a value no engine starts with.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    block_size: int
    num_gpu_blocks: int
    enable_prefix_caching: bool = True
    enable_chunked_prefill: bool = True
    long_prefill_token_threshold: int = 0
    scheduling_policy: str = "fcfs"
    scheduler_reserve_full_isl: bool = True
    watermark: float = 0.0
    async_scheduling: bool = False
    eviction: str = "lru"
    eviction_ttl_s: float = DEFAULT_TTL_S
    attention_parity_tokens: float = DEFAULT_PARITY_TOKENS
    pipeline_stages: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _POSITIVE and value < 1:
                raise InputError(f"{field.name} is {value}", remedy="give at least 1")
        if self.long_prefill_token_threshold < 0:
            raise InputError(
                f"long_prefill_token_threshold is {self.long_prefill_token_threshold}",
                remedy="give 0 for no cap, or a number of tokens",
            )
        if not self.eviction_ttl_s > 0:
            raise InputError(f"eviction_ttl_s is {self.eviction_ttl_s}", remedy="give seconds")
        if not 0 <= self.watermark < 1:
            raise InputError(f"watermark is {self.watermark}", remedy="give a share in [0, 1)")

    @property
    def queue_depth(self) -> int:
        """Steps that may be in flight: one a stage, and one ahead of them if asynchronous.

        Source: vLLM 0.33.0, `VllmConfig.max_concurrent_batches`, its second model runner.
        """
        return self.pipeline_stages + self.async_scheduling

    @property
    def overlapping(self) -> bool:
        """Whether a step is scheduled while others are in flight."""
        return self.queue_depth > 1

    @property
    def watermark_blocks(self) -> int:
        """Blocks an admission leaves free while anything runs."""
        return int(self.watermark * self.num_gpu_blocks)

    def output_limit(self, request: Request) -> int:
        """Return after how many generated tokens `request` ends, for whatever reason.

        A prompt as long as the context still yields one token: the limit is looked at after it.
        """
        return min(request.output_tokens, max(1, self.max_model_len - request.prompt_tokens))

    def fits(self, request: Request) -> bool:
        """Whether `request` can ever be served; the engine rejects one that cannot.

        vLLM's server turns away a prompt that leaves no room for one token, and its engine
        refuses to start when a context of `max_model_len` does not fit into its blocks. A
        simulated engine may well have fewer blocks, and then a request that needs more than
        exist would preempt itself, be readmitted and preempt itself again, or block the head of
        the queue, for ever. So every request must fit when it is alone: then the first of the
        running list (the most urgent one under priority scheduling) can always take the blocks
        of the others, the watermark does not bind an empty engine, and somebody always
        advances. The last generated token is never computed, so this may be one token strict.
        """
        if request.prompt_tokens + 1 > self.max_model_len:
            return False
        longest = min(request.prompt_tokens + request.output_tokens, self.max_model_len)
        if not self.enable_chunked_prefill and longest > self.max_num_batched_tokens:
            return False
        return longest <= (self.num_gpu_blocks - 1) * self.block_size
