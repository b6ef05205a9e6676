"""Which active requests may hold memory in an iteration; one file a policy."""

from collections.abc import Callable

from twin.scheduling.trtllm.capacity.guaranteed_no_evict import GuaranteedNoEvict
from twin.scheduling.trtllm.capacity.max_utilization import MaxUtilization
from twin.scheduling.trtllm.capacity.selection import CapacityScheduler, Selection
from twin.scheduling.trtllm.capacity.static_batch import StaticBatch
from twin.scheduling.trtllm.kv_cache import KvCache
from twin.scheduling.trtllm.limits import TrtllmLimits

CAPACITY_SCHEDULERS: dict[str, Callable[[TrtllmLimits, KvCache], CapacityScheduler]] = {
    "GUARANTEED_NO_EVICT": GuaranteedNoEvict,
    "MAX_UTILIZATION": MaxUtilization,
    "STATIC_BATCH": StaticBatch,
}
"""`scheduler_config.capacity_scheduler_policy` to its class."""

__all__ = ["CAPACITY_SCHEDULERS", "CapacityScheduler", "Selection"]
