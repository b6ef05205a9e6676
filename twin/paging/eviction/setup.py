"""What an eviction order may know of the engine around it."""

from collections.abc import Callable
from dataclasses import dataclass

DEFAULT_TTL_S = 300.0
"""Five minutes after its last use: the lifetime that Anthropic's API gives a cached prompt unless
asked for another ("Prompt caching", docs of the Claude API)."""

DEFAULT_PARITY_TOKENS = 26_624.0
"""`twin.llm.flops.attention_parity_tokens` of llama-3.1-8b."""


def no_clock() -> float:
    """Stand for a clock where time does not pass."""
    return 0.0


@dataclass(frozen=True, slots=True)
class EvictionSetup:
    """What orders are built with; each reads what it needs.

    Attributes:
        num_blocks: blocks of the pool, the null block included.
        clock: simulated seconds, never the wall clock's.
        ttl_s: seconds after its last use for which `ttl` lets a block be found.
        parity_blocks: blocks of context at which the attention of a token costs as much as the
            rest of the network, for `cost_aware`.
    """

    num_blocks: int
    clock: Callable[[], float] = no_clock
    ttl_s: float = DEFAULT_TTL_S
    parity_blocks: float = DEFAULT_PARITY_TOKENS / 16
