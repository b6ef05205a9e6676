"""How engines decide what a step runs; one class an engine."""

from collections.abc import Callable

from twin.scheduling.base import Scheduler
from twin.scheduling.limits import SchedulerLimits
from twin.scheduling.vllm_v1 import VllmV1Scheduler

SCHEDULERS: dict[str, Callable[[SchedulerLimits], Scheduler]] = {"vllm": VllmV1Scheduler}
"""Engine name to the constructor of its scheduler."""
