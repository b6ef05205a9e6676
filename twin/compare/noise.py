"""How much two runs of one real server differ: changes within it rank nothing."""

# Repeated serving runs of the same configuration, public closed-loop measurements on H100 and H200:
# TPOT within 0.3 % (median; P90 1.1 %), TTFT within 1.7 % (P90 13.7 %). The P90 of TPOT stands for
# everything that follows from step times; for TTFT the median, its P90 being saturated rows.
_STEP, _FIRST_TOKEN = 0.011, 0.017
NOISE_FLOOR: dict[str, float] = {
    "ttft_s": _FIRST_TOKEN,
    "queue_s": _FIRST_TOKEN,
    "tpot_s": _STEP,
    "itl_s": _STEP,
    "e2e_s": _STEP,
    "requests_per_s": _STEP,
    "input_tokens_per_s": _STEP,
    "output_tokens_per_s": _STEP,
    "goodput_requests_per_s": _STEP,
}
"""Relative noise by figure, as `compare(relative_error=…)` takes it."""
