"""What each knob stands at in a scenario, the engine's own defaults filled in."""

from twin.engine.engines import serving_engine
from twin.paging.eviction.setup import DEFAULT_TTL_S
from twin.scenario import Scenario
from twin.search.candidates import value_in
from twin.search.knob import Value
from twin.search.space import SPACE

_RESOLVED = ("max_num_seqs", "max_num_batched_tokens", "gpu_memory_utilization", "async_scheduling")
_LARGEST_CAPTURED = {
    "vllm": "policy.max_cudagraph_capture_size",
    "sglang": "policy.sglang.cuda_graph_max_bs",
    "trtllm": "policy.trtllm.cuda_graph_max_batch_size",
}
_SGLANG_PREFILL_TOKENS = 16384


def defaults_of(scenario: Scenario) -> dict[str, Value]:
    """Return {dotted key: value} of all knobs.

    Args:
        scenario: resolved; its workload is not looked at.
    """
    found = {knob.key: value_in(scenario.file, knob.key) for knob in SPACE}
    for name in _RESOLVED:
        found[f"policy.{name}"] = getattr(scenario.policy, name)
    engine = scenario.file.engine.name
    sizes = serving_engine(scenario).capture_sizes(scenario)
    if sizes:
        found[_LARGEST_CAPTURED[engine]] = sizes[-1]
    if found["policy.sglang.max_prefill_tokens"] is None:
        found["policy.sglang.max_prefill_tokens"] = _SGLANG_PREFILL_TOKENS
    if found["policy.eviction_ttl_s"] is None:
        found["policy.eviction_ttl_s"] = DEFAULT_TTL_S
    return found
