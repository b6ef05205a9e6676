"""Host time around the GPU: priors by engine, to be replaced by fits.

None of these is fitted on this project's runs. They are the middles of ranges that prototypes
needed to explain public serving measurements: 0.1-0.5 ms of host time a step for vLLM 0.15.1
(open loop), 0.2-1.6 ms a step plus 0.01-0.04 ms a sequence over vLLM, SGLang and TensorRT-LLM
(closed loop), and 3-5 ms of API and HTTP a request.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostCosts:
    """Seconds the host spends around a step and a request.

    Attributes:
        schedule_s: deciding and launching a step.
        schedule_per_seq_s: the same, for each scheduled sequence.
        update_s: processing a step's output.
        update_per_seq_s: the same, for each sequence of the step.
        wake_s: from the end of the GPU's work until the host sees it.
        api_s: HTTP, tokenising and queues, once a request.
        source: where the figures come from.
        fitted: whether a fit on runs of this very engine stands behind them.
    """

    schedule_s: float
    schedule_per_seq_s: float
    update_s: float
    update_per_seq_s: float
    wake_s: float
    api_s: float
    source: str
    fitted: bool = False


# 0.3 ms a step (middle of 0.1-0.5) halved between scheduling and update; 0.02 ms a sequence
# (geometric middle of 0.01-0.04) likewise; 4 ms a request (middle of 3-5). No figure for the
# wake-up is published: a blocking wait's few tens of microseconds are inside the step's range,
# so it is 0 here.
_VLLM = HostCosts(
    0.15e-3, 0.01e-3, 0.15e-3, 0.01e-3, 0.0, 4e-3,
    source="middle of 0.1-0.5 ms a step (vLLM 0.15.1 runs), 0.01-0.04 ms a sequence, 3-5 ms a "
    "request",
)  # fmt: skip

# 0.57 ms a step is the geometric middle of 0.2-1.6.
_CLOSED_LOOP_SOURCE = (
    "geometric middle of 0.2-1.6 ms a step and 0.01-0.04 ms a sequence (closed-loop rows of "
    "vLLM, SGLang and TensorRT-LLM together); 3-5 ms a request is vLLM's"
)
_CLOSED_LOOP = HostCosts(
    0.285e-3, 0.01e-3, 0.285e-3, 0.01e-3, 0.0, 4e-3, source=_CLOSED_LOOP_SOURCE
)

# (engine, least version): the newest entry not above the asked version holds.
HOST_COSTS: dict[str, tuple[tuple[tuple[int, ...], HostCosts], ...]] = {
    "vllm": (((0,), _VLLM),),
    "sglang": (((0,), _CLOSED_LOOP),),
    "trtllm": (((0,), _CLOSED_LOOP),),
}


def host_costs_for(engine: str, version: str = "") -> HostCosts:
    """Return the priors of an engine at a version ("" or unparsable parts: the oldest).

    Raises:
        KeyError: there is no such engine.
    """
    asked = tuple(int(part) for part in version.split(".") if part.isdigit())
    entries = HOST_COSTS[engine]
    held = entries[0][1]
    for least, costs in entries:
        if least <= asked:
            held = costs
    return held
