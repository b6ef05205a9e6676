"""`TrtllmLimits`: every number the scheduler of TensorRT-LLM decides by."""

from dataclasses import dataclass
from typing import Any

from twin.errors import InputError
from twin.naming import lookup
from twin.request import Request

STRATA = {"early": False, "main": True}
"""Two states of the source, by content: early 2026 (1.3.0rc) and autumn 2026 (1.4rc); the value
says whether a context is charged only what it computes beyond the cached prefix."""

FREE_GPU_MEMORY_FRACTION = 0.9
"""Default of `kv_cache_config.free_gpu_memory_fraction`: a share of what weights, activations and
graphs leave, not of the whole memory."""

CAPACITY_POLICIES = {
    "GUARANTEED_NO_EVICT": "blocks to completion must be free",
    "MAX_UTILIZATION": "blocks for the next step must be free; the newest is paused",
    "STATIC_BATCH": "new requests only when no generation is left",
}
CHUNKING_POLICIES = ("FIRST_COME_FIRST_SERVED", "EQUAL_PROGRESS")

_MLA_CHUNKING_SMS = (90, 100, 103, 120)
_WINDOW_CHUNK_UNIT_TOKENS = 256
_POSITIVE = ("max_batch_size", "max_num_tokens", "max_seq_len", "tokens_per_block", "num_blocks")
_NOT_NEGATIVE = ("batch_wait_timeout_iters", "batch_wait_max_tokens_ratio")


@dataclass(frozen=True, slots=True)
class TrtllmLimits:
    """The policy of one engine with every default resolved, in TensorRT-LLM's spelling.

    Attributes:
        max_batch_size: most requests in a step, and most active requests (one pipeline stage).
        max_num_tokens: token budget of a step.
        max_seq_len: longest context, tokens of prompt and answer.
        tokens_per_block: tokens a KV block.
        num_blocks: KV blocks; every one can be held (no null block).
        capacity_scheduler_policy: one of `CAPACITY_POLICIES`.
        enable_chunked_prefill: a prompt may be split over steps.
        context_chunking_policy: one of `CHUNKING_POLICIES`; used with chunked prefill alone.
        enable_block_reuse: keep blocks in a radix tree and reuse those of equal prefixes.
        enable_partial_reuse: reuse the first tokens of a block that differs later.
        copy_on_partial_reuse: copy such a block where it is in use or has successors; off: only a
            block that nobody uses counts.
        enable_prefix_aware_scheduling: put a context off whose prefix another one computes now.
        overlap: launch a step before the one before it is processed (overlap scheduler).
        batch_wait_timeout_iters: most iterations in which contexts are held back; 0: none.
        batch_wait_max_tokens_ratio: share of `max_num_tokens` from which they are not; 0: none.
        stratum: one of `STRATA`.
        waiting_queue: `fcfs`, or `priority` (stratum main only).
        cuda_graph_dummy_block: one block belongs to the dummy request that pads graphs.
        shortest_window_tokens: shortest attention window, as far as it sets the chunk unit (window
            pools are not modelled); None: no window.

    Raises:
        InputError: a value no engine starts with.
    """

    max_batch_size: int
    max_num_tokens: int
    max_seq_len: int
    tokens_per_block: int
    num_blocks: int
    capacity_scheduler_policy: str = "GUARANTEED_NO_EVICT"
    enable_chunked_prefill: bool = False
    context_chunking_policy: str = "FIRST_COME_FIRST_SERVED"
    enable_block_reuse: bool = True
    enable_partial_reuse: bool = True
    copy_on_partial_reuse: bool = True
    enable_prefix_aware_scheduling: bool = True
    overlap: bool = True
    batch_wait_timeout_iters: int = 0
    batch_wait_max_tokens_ratio: float = 0.0
    stratum: str = "main"
    waiting_queue: str = "fcfs"
    cuda_graph_dummy_block: bool = False
    shortest_window_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}", remedy="give at least 1")
        for name in _NOT_NEGATIVE:
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is {getattr(self, name)}", remedy="give 0 or more")
        if self.batch_wait_max_tokens_ratio > 1:
            raise InputError(
                f"batch_wait_max_tokens_ratio is {self.batch_wait_max_tokens_ratio}",
                remedy="give a share of max_num_tokens, at most 1",
            )
        self._check_names()
        if self.usable_blocks < 1:
            raise InputError(
                f"num_blocks {self.num_blocks} leaves no block to hold",
                remedy="give at least 2: the graph padding's dummy request holds one",
            )
        if self.enable_chunked_prefill and self.max_num_tokens < self.chunk_unit_tokens:
            raise InputError(
                f"max_num_tokens {self.max_num_tokens} is below the chunk unit of "
                f"{self.chunk_unit_tokens} tokens, so a longer prompt never advances",
                remedy="raise max_num_tokens or lower tokens_per_block",
            )

    def _check_names(self) -> None:
        lookup(CAPACITY_POLICIES, self.capacity_scheduler_policy, "capacity scheduler policy")
        lookup(
            dict.fromkeys(CHUNKING_POLICIES),
            self.context_chunking_policy,
            "context chunking policy",
        )
        lookup(STRATA, self.stratum, "stratum of TensorRT-LLM")
        if self.waiting_queue == "priority" and self.stratum == "early":
            raise InputError(
                "waiting_queue 'priority' does not exist in stratum 'early'",
                remedy="use 'fcfs' or stratum 'main'",
            )

    @property
    def usable_blocks(self) -> int:
        """KV blocks that requests can hold."""
        return self.num_blocks - self.cuda_graph_dummy_block

    @property
    def charges_reuse(self) -> bool:
        """Whether capacity and token budget know of cached prefixes (stratum main)."""
        return self.enable_block_reuse and STRATA[self.stratum]

    @property
    def chunk_unit_tokens(self) -> int:
        """What a chunk that is not the last of its prompt is rounded down to."""
        window = self.shortest_window_tokens
        if window is not None and window < self.max_seq_len:
            return max(_WINDOW_CHUNK_UNIT_TOKENS, self.tokens_per_block)
        return self.tokens_per_block

    def foreseen_output(self, request: Request) -> int:
        """Return after how many generated tokens `request` ends unless a stop token comes first.

        Cut where prompt and answer reach `max_seq_len`; a prompt always yields one token.
        """
        return min(request.max_tokens, max(1, self.max_seq_len - request.prompt_tokens))

    def output_limit(self, request: Request) -> int:
        """Return after how many generated tokens `request` ends, for whatever reason."""
        return min(request.output_tokens, self.foreseen_output(request))

    def blocks_to_completion(self, request: Request) -> int:
        """Return the blocks of prompt and foreseen answer, its last token included."""
        tokens = request.prompt_tokens + self.foreseen_output(request)
        return -(-tokens // self.tokens_per_block)

    def fits(self, request: Request) -> bool:
        """Whether `request` can ever be served; the server refuses one that cannot.

        Without chunking a prompt must fit into one step. Under GUARANTEED_NO_EVICT and
        STATIC_BATCH the foreseen answer must fit into the blocks, or the request would stand at
        the head for ever; under MAX_UTILIZATION what it really generates must, or it would pause
        itself for ever.
        """
        if request.prompt_tokens + 1 > self.max_seq_len:
            return False
        if not self.enable_chunked_prefill and request.prompt_tokens > self.max_num_tokens:
            return False
        if self.capacity_scheduler_policy == "MAX_UTILIZATION":
            tokens = request.prompt_tokens + self.output_limit(request)
            return -(-tokens // self.tokens_per_block) <= self.usable_blocks
        return self.blocks_to_completion(request) <= self.usable_blocks


def trtllm_defaults(
    max_seq_len: int,
    num_blocks: int,
    *,
    stratum: str = "main",
    mla: bool = False,
    sm: int = 90,
    **changes: Any,
) -> TrtllmLimits:
    """Return what `trtllm-serve` runs with unless told otherwise (`llm_args.py`).

    Args:
        max_seq_len: longest context, tokens.
        num_blocks: KV blocks that the memory gives.
        stratum: one of `STRATA`.
        mla: multi-head latent attention, which cannot be chunked on every GPU.
        sm: compute capability of the GPU, ten times major plus minor.
        changes: fields of `TrtllmLimits` set by the operator.

    Raises:
        InputError: a value no engine starts with.
    """
    values: dict[str, Any] = {
        "max_batch_size": 2048,
        "max_num_tokens": 8192,
        "tokens_per_block": 32,
    }
    values.update(changes)
    if mla and sm not in _MLA_CHUNKING_SMS:
        values["enable_chunked_prefill"] = False
    return TrtllmLimits(max_seq_len=max_seq_len, num_blocks=num_blocks, stratum=stratum, **values)
