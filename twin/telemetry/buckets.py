"""Bucket bounds of vLLM's histograms.

Source: vLLM 0.33.0, `vllm/v1/metrics/buckets.py` (families of the same names).
"""

from itertools import count, takewhile

REQUEST_LATENCY = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    240.0, 480.0, 960.0, 1920.0, 7680.0,
)  # fmt: skip
"""Seconds: end-to-end, queue, inference, prefill and decode time."""

TIME_TO_FIRST_TOKEN = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
"""Seconds."""

INTER_TOKEN_LATENCY = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0,
)  # fmt: skip
"""Seconds: gaps between tokens, and their mean over a request."""

ITERATION_TOKENS = tuple(float(n) for n in (1, *(2**power for power in range(3, 15))))
"""Tokens of a step: 1, then powers of two from 8 to 16,384."""

NUM_PREEMPTIONS = (1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)
"""Preemptions of a request."""


def request_tokens(max_model_len: int) -> tuple[float, ...]:
    """Return 1, 2, 5, 10, 20 … up to the context limit: bounds of prompt and answer lengths."""
    ladder = (float(step * 10**power) for power in count() for step in (1, 2, 5))
    return tuple(takewhile(lambda bound: bound <= max_model_len, ladder))
