"""What a gain has to exceed to be more than an error of the forecast."""

from collections.abc import Iterable

from twin.forecast_error import ForecastError, difference_error, forecast_error

PRICING = (
    "policy.kv_cache_dtype",
    "policy.quantization",
    "policy.enforce_eager",
    "policy.cudagraph_mode",
    "policy.max_cudagraph_capture_size",
    "policy.sglang.cuda_graph_max_bs",
    "policy.trtllm.cuda_graph_max_batch_size",
    "policy.trtllm.cuda_graph_padding",
    "policy.async_scheduling",
    "policy.block_size",
    "policy.sglang.page_size",
    "policy.trtllm.tokens_per_block",
    "parallelism",
    "gpu",
    "engine",
)
"""Keys that change what a step of the same batch takes; a key stands for all below it."""

FIRST_TOKEN = "p99_ttft_s"  # noqa: S105 (an objective, not a secret)


def same_prices(changed: Iterable[str]) -> bool:
    """Whether the same batch takes the same time, whatever these keys are set to."""
    return not any(
        key == pricing or key.startswith(f"{pricing}.") for key in changed for pricing in PRICING
    )


def threshold(objective: str, changed: Iterable[str], *, experts: bool) -> float:
    """Return the relative gain that forecast error alone may feign.

    The 90th percentile of the error of a ratio of two forecasts, not the median: a search picks
    among hundreds of candidates the one that errors favour, and running it again in the same
    twin does not take that out.

    Args:
        objective: its name; TTFT has an error of its own, all others follow step times.
        changed: keys in which the two policies differ.
        experts: whether the network is a mixture of experts.
    """
    error = difference_error(experts=experts, same_prices=same_prices(changed))
    return error.ttft_p90 if objective == FIRST_TOKEN else error.tpot_p90


def stands_in(objective: str) -> str:
    """Return whose error `threshold` takes for an objective's; see `STANDS_IN`."""
    return "mean TTFT" if objective == FIRST_TOKEN else "mean TPOT"


def slo_errors(*, experts: bool) -> tuple[float, float]:
    """Return how far TTFT and TPOT may be off their limits: P90 errors of one forecast."""
    error: ForecastError = forecast_error(experts=experts)
    return error.ttft_p90, error.tpot_p90


def constraint_threshold(name: str, changed: Iterable[str], *, experts: bool) -> float:
    """Return by how much one policy must be better in a constraint to be said to be.

    Args:
        name: of the constraint: `ttft_s`, `tpot_s`; others are counts and have no such error.
        changed: keys in which the two policies differ.
        experts: whether the network is a mixture of experts.
    """
    error = difference_error(experts=experts, same_prices=same_prices(changed))
    return {"ttft_s": error.ttft_p90, "tpot_s": error.tpot_p90}.get(name, 0.0)


def margin_error(name: str, changed: Iterable[str], *, experts: bool) -> float:
    """Return by how much a limit must be kept to be sure of it, relative to the limit.

    One forecast is held against it, not two, so one forecast's error is what counts. It is that
    of a mean, though, and limits are of percentiles: where the error of the difference is the
    larger of the two, it is taken, so that no margin below an error that is told passes.

    Args:
        name: of the constraint: `ttft_s`, `tpot_s`; others are counts and have no such error.
        changed: keys in which the policy differs from the default.
        experts: whether the network is a mixture of experts.
    """
    one = dict(zip(("ttft_s", "tpot_s"), slo_errors(experts=experts), strict=True))
    return max(one.get(name, 0.0), constraint_threshold(name, changed, experts=experts))
