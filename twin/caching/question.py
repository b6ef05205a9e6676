"""What `twin cache` compares."""

from dataclasses import dataclass

from twin.caching.gpu_pool import GpuPool
from twin.paging.eviction.setup import DEFAULT_PARITY_TOKENS, DEFAULT_TTL_S

BELADY = "belady"
"""The optimum's name beside those of `EVICTION`."""


@dataclass(frozen=True, slots=True)
class CacheQuestion:
    """What is compared.

    Attributes:
        policies: names in `EVICTION`, in the order in which they are shown.
        capacities_blocks: pool sizes, blocks that requests can hold; increasing.
        ttl_s: for `ttl`.
        parity_tokens: for `cost_aware`; see `SchedulerLimits.attention_parity_tokens`.
        llm: whose KV the blocks are; empty: bytes are not told.
        token_bytes: KV bytes of a token over all GPUs; 0: not told.
        pool: of a GPU, where its size is among `capacities_blocks`.
    """

    policies: tuple[str, ...]
    capacities_blocks: tuple[int, ...]
    ttl_s: float = DEFAULT_TTL_S
    parity_tokens: float = DEFAULT_PARITY_TOKENS
    llm: str = ""
    token_bytes: int = 0
    pool: GpuPool | None = None
