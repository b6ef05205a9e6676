"""A request as asked (immutable) and its progress in an engine (mutable)."""

import math
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Protocol

# Block keys pack (chained segment id, block index) into one int: an index below 2**24 blocks is
# more than a 268-million-token context at 16 tokens a block.
_INDEX_BITS = 24


class Content(Protocol):
    """What the tokens of a request are, as far as prefix caching must know."""

    def block_keys(self, block_size: int, num_tokens: int) -> list[int]:
        """Return a key for each full block of the first `num_tokens` tokens.

        Equal keys mean equal content from the first token to the end of that block (the chained
        hash of the engine). `num_tokens` counts prompt and generated tokens.
        """
        ...


@dataclass(frozen=True, slots=True)
class SegmentContent:
    """Content as a row of segments with *chained* identity.

    A segment id stands for its own tokens and for everything before them, so two requests share
    a prefix exactly as far as they share leading segment ids. The last segment covers whatever
    follows, generated tokens included.

    Attributes:
        ids: chained segment ids, one a segment.
        ends: token position at which each segment ends (exclusive), increasing; the last one may
            be smaller than the token count asked for, its id then covers the rest.
    """

    ids: tuple[int, ...]
    ends: tuple[int, ...]

    def block_keys(self, block_size: int, num_tokens: int) -> list[int]:
        """See `Content.block_keys`: the segment holding a block's last token names the block."""
        keys: list[int] = []
        blocks, last = num_tokens // block_size, len(self.ids) - 1
        for segment, (identity, end) in enumerate(zip(self.ids, self.ends, strict=True)):
            # The first block whose last token lies beyond this segment.
            beyond = blocks if segment == last else min(blocks, end // block_size)
            if beyond > len(keys):
                first = identity << _INDEX_BITS
                keys.extend(range(first | len(keys), (first | (beyond - 1)) + 1))
        return keys


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asks.

    Attributes:
        index: dense number, unique within a run, in order of creation.
        arrival_s: when it reaches the server, seconds since the start of the run.
        prompt_tokens: length of the prompt.
        max_tokens: limit on generated tokens; the scheduler knows it.
        stop_after_tokens: the n-th generated token is a stop token, which no scheduler foresees;
            None: the request runs to `max_tokens`.
        content: identity of its tokens for prefix caching; None shares nothing.
        priority: smaller is served first under priority scheduling.
        name: the client's own id.
        ignore_eos: it says that it never stops before `max_tokens`, and the scheduler may rely
            on that (SGLang does).
        session, turn: the conversation it belongs to; -1: none.
        tenant: who asks; empty: unknown.
    """

    index: int
    arrival_s: float
    prompt_tokens: int
    max_tokens: int
    stop_after_tokens: int | None = None
    content: Content | None = None
    priority: int = 0
    name: str = ""
    session: int = -1
    turn: int = 0
    tenant: str = ""
    ignore_eos: bool = False

    @property
    def output_tokens(self) -> int:
        """Tokens it will generate unless the context limit ends it first."""
        if self.stop_after_tokens is None:
            return self.max_tokens
        return min(self.max_tokens, self.stop_after_tokens)


class Status(IntEnum):
    """Where a request stands in the scheduler."""

    WAITING = 0
    RUNNING = 1
    PREEMPTED = 2
    FINISHED = 3


@dataclass(slots=True, eq=False)
class RequestState:
    """Progress of one request inside one scheduler.

    Attributes:
        request: what was asked.
        num_computed: tokens whose KV is computed or scheduled to be.
        num_output: generated tokens known to the scheduler.
        placeholders: sampled tokens not yet known (asynchronous scheduling).
        in_flight: tokens scheduled whose step has not been processed yet; 0 where every step is
            processed before the next is scheduled.
        next_token_call: schedule call from which its next token may be computed (asynchronous
            scheduling in a pipeline).
        blocks: KV blocks held, in token order.
        block_keys: keys of the full blocks of prompt and answer; empty without prefix caching.
        cached_tokens: prefix-cache hit of the first admission, tokens; -1 before it.
        preemptions: times it lost its blocks.
        finish_reason: "", "stop", "length", "lost" (the replica crashed) or "abort"; the last may
            precede the end, where an engine ends a request some time after its client gave it up.
        output_limit: generated tokens at which it ends, by whatever reason; set by the scheduler
            that takes it, which compares only tokens already generated with it.
        arrival_s: the engine's own time stamp of its arrival, by which it orders requests of one
            priority; the request's unless the engine sets another. A server's clock never
            stamps two requests alike, and equal ones could evict each other for ever.
    """

    request: Request
    status: Status = Status.WAITING
    num_computed: int = 0
    num_output: int = 0
    placeholders: int = 0
    in_flight: int = 0
    next_token_call: int = 0
    blocks: list[int] = field(default_factory=list)
    num_cached_blocks: int = 0
    block_keys: list[int] = field(default_factory=list)
    cached_tokens: int = -1
    preemptions: int = 0
    finish_reason: str = ""
    output_limit: int = 0
    arrival_s: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.arrival_s):
            self.arrival_s = self.request.arrival_s

    @property
    def num_tokens(self) -> int:
        """Known tokens: prompt and generated."""
        return self.request.prompt_tokens + self.num_output
