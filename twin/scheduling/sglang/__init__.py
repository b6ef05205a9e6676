"""SGLang's scheduler as a policy of its own."""

from twin.scheduling.sglang.limits import SglangLimits
from twin.scheduling.sglang.scheduler import SGLANG_VERSION, SglangScheduler

__all__ = ["SGLANG_VERSION", "SglangLimits", "SglangScheduler"]
