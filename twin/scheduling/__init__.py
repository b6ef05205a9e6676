"""How engines decide what a step runs; one class an engine."""

from collections.abc import Callable

from twin.scheduling.base import Scheduler
from twin.scheduling.limits import SchedulerLimits
from twin.scheduling.sglang import SglangScheduler
from twin.scheduling.trtllm import TrtllmScheduler
from twin.scheduling.vllm_v1 import VllmV1Scheduler

SCHEDULERS: dict[str, Callable[..., Scheduler]] = {
    "vllm": VllmV1Scheduler,
    "sglang": SglangScheduler,
    "trtllm": TrtllmScheduler,
}
"""Engine name to the constructor of its scheduler, which takes the limits of that engine."""

__all__ = [
    "SCHEDULERS",
    "Scheduler",
    "SchedulerLimits",
    "SglangScheduler",
    "TrtllmScheduler",
    "VllmV1Scheduler",
]
