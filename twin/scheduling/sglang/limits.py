"""`SglangLimits`: every number SGLang's scheduler decides by."""

from dataclasses import dataclass

from twin.request import Request
from twin.scheduling.sglang.validation import check_limits

_INPUT_MARGIN_TOKENS = 5
"""A prompt must be this much shorter than the longest request (`max_req_input_len`)."""


@dataclass(frozen=True, slots=True)
class SglangLimits:
    """The policy of one SGLang server with every default resolved, in SGLang's spelling.

    Sizes are tokens. The defaults are those of 0.5.23 that do not depend on the GPU; see
    `twin.scheduling.sglang.defaults` for the others.

    Attributes:
        max_total_num_tokens: the KV pool; the reserved slot comes on top of it.
        context_length: longest request, prompt and answer.
        max_running_requests: most requests in a batch.
        page_size: tokens a KV page.
        chunked_prefill_size: most prompt tokens of a batch; 0 or less: prompts are not split.
        max_prefill_tokens: prompt tokens of a batch at which no further request joins.
        prefill_max_requests: most requests in a prefill batch; None: no cap.
        schedule_policy: order of the waiting queue.
        schedule_conservativeness: scales the share of foreseen output that admission reserves.
        disable_radix_cache: keep no prefixes.
        enable_mixed_chunk: a prefill batch also carries the running requests.
        radix_eviction_policy: which cached leaf goes first.
        tlru_threshold, tlru_next_prompt_estimate: parameters of `tlru`.
        retraction_policy: who loses its KV when a decode does not fit.
        enable_priority_scheduling: order and preempt by priority.
        disable_priority_preemption: only order by it.
        priority_scheduling_preemption_threshold: by how much a priority must be exceeded.
        schedule_low_priority_values_first: smaller values are more urgent.
        overlap: decide a step before the result of the one before it is known.
        init_new_token_ratio, min_new_token_ratio_factor, new_token_ratio_decay_steps: how the
            reserved share of foreseen output starts, ends and falls.
        retract_decode_steps: decode steps for which a retraction makes room.
        clip_max_new_tokens_estimation: foreseen output beyond this is not reserved.
        waiting_prefix_refresh: touch the prefixes of waiting requests now and then.
        in_batch_check_threshold, in_batch_deprioritize_threshold: when a request waits for
            another one with the same prefix to be computed first (`lpm` and kin).
        request_rows: rows of the table of running requests; None: `max_running_requests`.
        radix_key_tokens: tokens that one key of the prefix tree stands for, a multiple of
            `page_size`; 0: a page, which is exact. A larger key makes long prompts affordable
            where pages are single tokens. Allocation stays in pages; only what is kept and found
            is rounded down to whole keys: a hit, and what stays of a request after its end, may
            be up to `radix_key_tokens - page_size` tokens shorter than in SGLang. A prefix that
            ends at a multiple of it, before the prompt's last token, is found in full.

    Raises:
        InputError: a value with which SGLang dies sooner or later. (Its own parser checks types
            and choices only.)
    """

    max_total_num_tokens: int
    context_length: int
    max_running_requests: int
    page_size: int = 1
    chunked_prefill_size: int = 8192
    max_prefill_tokens: int = 16384
    prefill_max_requests: int | None = None
    schedule_policy: str = "fcfs"
    schedule_conservativeness: float = 1.0
    disable_radix_cache: bool = False
    enable_mixed_chunk: bool = False
    radix_eviction_policy: str = "lru"
    tlru_threshold: int = 0
    tlru_next_prompt_estimate: int = 0
    retraction_policy: str = "length"
    enable_priority_scheduling: bool = False
    disable_priority_preemption: bool = False
    priority_scheduling_preemption_threshold: int = 10
    schedule_low_priority_values_first: bool = False
    overlap: bool = True
    init_new_token_ratio: float = 0.7
    min_new_token_ratio_factor: float = 0.14
    new_token_ratio_decay_steps: int = 600
    retract_decode_steps: int = 20
    clip_max_new_tokens_estimation: int = 4096
    waiting_prefix_refresh: bool = True
    in_batch_check_threshold: int = 32
    in_batch_deprioritize_threshold: int = 32
    request_rows: int | None = None
    radix_key_tokens: int = 0

    def __post_init__(self) -> None:
        check_limits(self)

    @property
    def pool_tokens(self) -> int:
        """KV tokens in whole pages."""
        return self.max_total_num_tokens // self.page_size * self.page_size

    @property
    def max_req_len(self) -> int:
        """Tokens of the longest request, its last one included."""
        return min(self.context_length, self.max_total_num_tokens) - 1

    @property
    def key_tokens(self) -> int:
        """Tokens a key of the prefix tree."""
        return self.radix_key_tokens or self.page_size

    @property
    def mixed(self) -> bool:
        """Whether prefill batches carry decodes; without chunked prefill the option is void."""
        return self.enable_mixed_chunk and self.chunked_prefill_size > 0

    @property
    def preempts(self) -> bool:
        """Whether a more urgent request takes the place of a running one."""
        return self.enable_priority_scheduling and not self.disable_priority_preemption

    def ceil_page(self, tokens: int) -> int:
        """Round up to whole pages."""
        return -(-tokens // self.page_size) * self.page_size

    def max_new_tokens(self, request: Request) -> int:
        """Return the limit on generated tokens as clipped on intake; 0 still yields one."""
        prompt = request.prompt_tokens
        most = max(0, min(request.max_tokens, self.max_req_len - prompt - 1))
        memory = self.pool_tokens - self.ceil_page(prompt) - self.page_size - 1
        return max(0, min(most, memory))

    def raw_priority(self, request: Request) -> int:
        """Return the priority as SGLang holds it; there the larger is the more urgent.

        (`Request.priority` is smaller for the more urgent, whichever engine serves it.)
        """
        value = request.priority
        return value if self.schedule_low_priority_values_first else -value

    def fits(self, request: Request) -> bool:
        """Whether `request` can ever be served; the server or its engine refuses it otherwise.

        A prompt must leave a margin below the longest request. And it must be admitted when it
        is alone, which is stricter without a prefix cache when the end of its answer is known:
        SGLang lets one that is not wait for ever.
        """
        prompt, page = request.prompt_tokens, self.page_size
        if prompt >= self.max_req_len - _INPUT_MARGIN_TOKENS:
            return False
        most = self.max_new_tokens(request)
        if request.ignore_eos and self.disable_radix_cache:
            # After a retraction its output is prompt too, and may straddle one page more.
            return self.pool_tokens - 2 * page + 1 - prompt - most > 1
        reserved = min(most, self.clip_max_new_tokens_estimation)
        return prompt + reserved + page < self.pool_tokens
