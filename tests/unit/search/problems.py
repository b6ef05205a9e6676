"""Small search problems for tests."""

from twin.search.problem import Limits
from twin.search.setting import make_problem

SMALL = {
    "workload.num_requests": 40,
    "workload.arrivals.rate": 20,
    "workload.prompt_tokens": 300,
    "workload.output_tokens": 30,
}
ENGINES = {
    "vllm": {},
    "sglang": {"engine": {"name": "sglang"}},
    "trtllm": {"engine": {"name": "trtllm"}},
}


def problem(overrides=None, *, engine="vllm", objectives=("goodput_per_gpu_hour",), **more):
    """Return a problem of the chat example with few short requests."""
    own = ENGINES.get(engine, {})
    more.setdefault("limits", Limits(gpus=1))
    return make_problem(
        "chat-h100", {**SMALL, **own, **(overrides or {})}, engine=engine, objectives=objectives,
        **more,
    )  # fmt: skip


def keys(found):
    """Return the keys of a problem's knobs."""
    return {knob.key for knob in found.knobs}


def values(found, key):
    """Return what a problem leaves of a knob."""
    from twin.search.domains import values_of

    return next(values_of(knob.domain) for knob in found.knobs if knob.key == key)
