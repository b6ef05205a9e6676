"""A run as Prometheus text, under vLLM's own metric names, so that its dashboards can show it.

Names, labels and help texts' meaning are those of vLLM 0.33.0's `vllm/v1/metrics/loggers.py`;
format: Prometheus text exposition 0.0.4, counters with `_total` as prometheus_client writes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from twin.engine.result import FINISHED, UNFINISHED, Floats, Ints, SimulationResult
from twin.telemetry.buckets import (
    INTER_TOKEN_LATENCY,
    ITERATION_TOKENS,
    NUM_PREEMPTIONS,
    REQUEST_LATENCY,
    TIME_TO_FIRST_TOKEN,
    request_tokens,
)

Labels = dict[str, str]

_HELP = {
    "num_requests_running": "Requests in execution batches",
    "num_requests_waiting": "Requests waiting to be processed",
    "num_requests_waiting_by_reason": "Waiting requests by reason",
    "kv_cache_usage_perc": "Share of KV cache blocks in use, 1 is all",
    "prefix_cache_queries": "Prefix cache queries in tokens",
    "prefix_cache_hits": "Prefix cache hits in tokens",
    "num_preemptions": "Preemptions since the start",
    "prompt_tokens": "Prompt tokens processed",
    "prompt_tokens_cached": "Prompt tokens found in the cache",
    "generation_tokens": "Tokens generated",
    "request_success": "Requests that finished",
    "iteration_tokens_total": "Tokens per engine step",
    "time_to_first_token_seconds": "Time to first token in seconds",
    "inter_token_latency_seconds": "Gap between tokens in seconds",
    "request_time_per_output_token_seconds": "Mean gap between tokens of a request in seconds",
    "e2e_request_latency_seconds": "End-to-end latency of a request in seconds",
    "request_queue_time_seconds": "Time a request waited first in seconds",
    "request_inference_time_seconds": "First scheduling to last token in seconds",
    "request_prefill_time_seconds": "First scheduling to first token in seconds",
    "request_decode_time_seconds": "First to last token in seconds",
    "request_num_preemptions": "Preemptions of a request",
    "request_prompt_tokens": "Prompt tokens of a request",
    "request_generation_tokens": "Tokens generated for a request",
    "request_prefill_kv_computed_tokens": "Prompt tokens of a request that were not cached",
}

_NOTE = """\
# Simulated by servetwin: the state at the end of the run, not a measurement.
# request_success has no finished_reason: a simulated request only ends, it is not told apart.
"""

_SHARED_NOTE = """\
# engine="all": inter-token gaps and prefix-cache counters are kept for all engines together.
"""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Observations sorted into buckets.

    Attributes:
        bounds: inclusive upper bounds, increasing; +Inf is added when written.
        cumulative: observations at or below each bound.
        total: their sum.
        number: how many there are.
    """

    bounds: tuple[float, ...]
    cumulative: tuple[int, ...]
    total: float
    number: int


def histogram(values: Floats | Ints, bounds: Sequence[float], each: int = 1) -> Histogram:
    """Return the histogram of the finite `values`; a value equal to a bound lies within it.

    `each`: how many there were for each that is given.
    """
    finite = np.asarray(values, dtype=np.float64)
    finite = finite[np.isfinite(finite)]
    slots = np.searchsorted(np.asarray(bounds, dtype=np.float64), finite, side="left")
    counts = np.bincount(slots, minlength=len(bounds) + 1)[: len(bounds)]
    cumulative = tuple(int(n) * each for n in np.cumsum(counts))
    total, number = float(finite.sum()) * each, int(finite.size) * each
    return Histogram(tuple(bounds), cumulative, total, number)


def prometheus_text(result: SimulationResult) -> str:
    """Return the metrics of a run at its end, one series an engine (a replica).

    Labels are `model_name` (the scenario's llm) and `engine` (the replica's number). What the
    result keeps for all replicas together carries `engine="all"` when there are several. Gauges
    of a replica with unfinished requests are those of its last step, others 0.
    """
    writer, each = _Writer(_model_name(result.inputs)), max(1, result.stride)
    engines = range(result.replicas)
    shared = "0" if result.replicas == 1 else "all"
    for name, values in _gauges(result).items():
        writer.simple(name, "gauge", {str(e): values[e] for e in engines})
    writer.by_reason({str(e): _gauges(result)["num_requests_waiting"][e] for e in engines})
    hits = {"prefix_cache_queries": result.prefix.queries, "prefix_cache_hits": result.prefix.hits}
    for name, value in hits.items():
        writer.simple(name, "counter", {shared: float(value)})
    for name, values in _counters(result).items():
        writer.simple(name, "counter", {str(e): values[e] for e in engines})
    writer.histograms(
        "inter_token_latency_seconds", {shared: histogram(result.itl_s, INTER_TOKEN_LATENCY, each)}
    )
    per_engine = [_histograms(result, engine) for engine in engines]
    for name in per_engine[0] if per_engine else ():
        writer.histograms(name, {str(e): per_engine[e][name] for e in engines})
    note = _NOTE + (_SHARED_NOTE if result.replicas > 1 else "")
    return note + "".join(writer.lines)


def _model_name(inputs: Mapping[str, Any]) -> str:
    llm = inputs.get("llm")
    if isinstance(llm, Mapping):
        llm = llm.get("name")
    return str(llm or "unknown")


def _gauges(result: SimulationResult) -> dict[str, list[float]]:
    requests, steps, usable = result.requests, result.steps, result.usable_of_core
    gauges: dict[str, list[float]] = {
        "num_requests_running": [],
        "num_requests_waiting": [],
        "kv_cache_usage_perc": [],
    }
    for engine in range(result.replicas):
        busy = bool(np.any((requests.replica == engine) & (requests.outcome == UNFINISHED)))
        rows = np.flatnonzero(steps.replica == engine)
        state = (0.0, 0.0, 0.0)
        if busy and rows.size:
            last = rows[-1]
            usage = steps.used_blocks[last] / usable[engine] if usable[engine] else 0.0
            state = (float(steps.running[last]), float(steps.waiting[last]), float(usage))
        for values, value in zip(gauges.values(), state, strict=True):
            values.append(value)
    return gauges


def _counters(result: SimulationResult) -> dict[str, list[float]]:
    requests = result.requests
    prefilled = np.isfinite(requests.first_token_s)
    weights = {
        "num_preemptions": requests.preemptions,
        # vLLM counts a prompt, and its cached part, when the first token comes.
        "prompt_tokens": np.where(prefilled, requests.prompt_tokens, 0),
        "prompt_tokens_cached": np.where(prefilled, np.maximum(requests.cached_tokens, 0), 0),
        "generation_tokens": requests.output_tokens,
        "request_success": requests.outcome == FINISHED,
    }
    served = requests.replica >= 0
    return {
        name: np.bincount(
            requests.replica[served], weights=values[served], minlength=result.replicas
        ).tolist()
        for name, values in weights.items()
    }


def _histograms(result: SimulationResult, engine: int) -> dict[str, Histogram]:
    """Histograms of one engine; all but TTFT and step tokens are of finished requests."""
    requests, steps = result.requests, result.steps
    mine = requests.replica == engine
    done = mine & (requests.outcome == FINISHED)
    arrival, scheduled = requests.arrival_s[done], requests.scheduled_s[done]
    first, finish = requests.first_token_s[done], requests.finish_s[done]
    prompt, output = requests.prompt_tokens[done], requests.output_tokens[done]
    computed = prompt - np.maximum(requests.cached_tokens[done], 0)
    ttft = requests.first_token_s[mine] - requests.arrival_s[mine]
    tokens = (steps.prefill_tokens + steps.decode_tokens)[steps.replica == engine]
    # As vLLM does: an answer of one token is observed as 0.
    tpot = np.where(output > 1, (finish - first) / np.maximum(output - 1, 1), 0.0)
    lengths = request_tokens(_longest(result))
    return {
        "time_to_first_token_seconds": histogram(ttft, TIME_TO_FIRST_TOKEN),
        "request_time_per_output_token_seconds": histogram(tpot, INTER_TOKEN_LATENCY),
        "e2e_request_latency_seconds": histogram(finish - arrival, REQUEST_LATENCY),
        "request_queue_time_seconds": histogram(scheduled - arrival, REQUEST_LATENCY),
        "request_inference_time_seconds": histogram(finish - scheduled, REQUEST_LATENCY),
        "request_prefill_time_seconds": histogram(first - scheduled, REQUEST_LATENCY),
        "request_decode_time_seconds": histogram(finish - first, REQUEST_LATENCY),
        "request_num_preemptions": histogram(requests.preemptions[done], NUM_PREEMPTIONS),
        "request_prompt_tokens": histogram(prompt, lengths),
        "request_generation_tokens": histogram(output, lengths),
        "request_prefill_kv_computed_tokens": histogram(computed, lengths),
        "iteration_tokens_total": histogram(tokens, ITERATION_TOKENS, max(1, result.stride)),
    }


def _longest(result: SimulationResult) -> int:
    """The context limit; where the inputs do not hold it, the longest request that came."""
    policy = result.inputs.get("policy")
    limit = policy.get("max_model_len") if isinstance(policy, Mapping) else None
    if limit:
        return int(limit)
    lengths = result.requests.prompt_tokens + result.requests.output_tokens
    return int(lengths.max()) if lengths.size else 1


class _Writer:
    """Collects exposition lines of one served model."""

    def __init__(self, model_name: str) -> None:
        self.lines: list[str] = []
        self._model_name = model_name

    def simple(self, name: str, kind: str, by_engine: Mapping[str, float]) -> None:
        wire = f"{name}_total" if kind == "counter" else name
        self._head(wire, name, kind)
        for engine, value in by_engine.items():
            self._sample(wire, {"engine": engine}, value)

    def by_reason(self, waiting: Mapping[str, float]) -> None:
        """Nothing here defers a request (no LoRA, no KV transfer): all wait for capacity."""
        name = "num_requests_waiting_by_reason"
        self._head(name, name, "gauge")
        for engine, value in waiting.items():
            for reason, number in (("capacity", value), ("deferred", 0.0)):
                self._sample(name, {"engine": engine, "reason": reason}, number)

    def histograms(self, name: str, by_engine: Mapping[str, Histogram]) -> None:
        self._head(name, name, "histogram")
        for engine, values in by_engine.items():
            for bound, number in zip(values.bounds, values.cumulative, strict=True):
                labels = {"engine": engine, "le": _number(bound)}
                self._sample(f"{name}_bucket", labels, number)
            self._sample(f"{name}_bucket", {"engine": engine, "le": "+Inf"}, values.number)
            self._sample(f"{name}_count", {"engine": engine}, values.number)
            self._sample(f"{name}_sum", {"engine": engine}, values.total)

    def _head(self, wire: str, name: str, kind: str) -> None:
        self.lines.append(f"# HELP vllm:{wire} {_HELP[name]}.\n# TYPE vllm:{wire} {kind}\n")

    def _sample(self, wire: str, labels: Labels, value: float) -> None:
        self.lines.append(f"vllm:{wire}{{{','.join(self._pairs(labels))}}} {_number(value)}\n")

    def _pairs(self, labels: Labels) -> Iterator[str]:
        for name, value in sorted((labels | {"model_name": self._model_name}).items()):
            escaped = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
            yield f'{name}="{escaped}"'


def _number(value: float) -> str:
    """A float as prometheus_client writes it: `1.0`, `0.025`."""
    return repr(float(value))
