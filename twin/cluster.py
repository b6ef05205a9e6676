"""What a scenario says of the cluster: replicas, pools, router, failures, autoscaling."""

from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field, field_serializer, model_validator

from twin.policy import EnginePolicy
from twin.strict import Strict
from twin.workload.limits import MAX_SECONDS

MAX_REPLICAS = 1024
MAX_REQUEUES = 1000

# Events closer together than these would take for ever to simulate.
Seconds = Annotated[float, Field(ge=0, le=MAX_SECONDS)]
Interval = Annotated[float, Field(ge=1e-3, le=MAX_SECONDS)]


class ParallelismSpec(Strict):
    """How one replica is spread over GPUs."""

    tp: Annotated[int, Field(ge=1, le=64, description="tensor parallel ranks")] = 1
    pp: Annotated[int, Field(ge=1, le=64, description="pipeline stages")] = 1
    dp: Annotated[int, Field(ge=1, le=64, description="data parallel ranks")] = 1
    ep: Annotated[int, Field(ge=1, le=256, description="expert parallel ranks")] = 1


class PlainRouter(Strict):
    """A router without parameters."""

    kind: Literal[
        "round_robin", "random", "least_requests", "least_tokens", "power_of_two", "session_sticky"
    ]


class PrefixAwareRouter(Strict):
    """The longest cached prefix, unless the load is out of balance."""

    kind: Literal["prefix_aware"]
    cache_threshold: Annotated[float, Field(ge=0, le=1)] = 0.3
    balance_abs_threshold: Annotated[int, Field(ge=0)] = 64
    balance_rel_threshold: Annotated[float, Field(ge=1)] = 1.5


ROUTER_KINDS = tuple(
    kind
    for model in (PlainRouter, PrefixAwareRouter)
    for kind in get_args(model.model_fields["kind"].annotation)
)
"""What `cluster.router` may be called."""


def _by_name(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


RouterSpec = Annotated[
    Annotated[PlainRouter | PrefixAwareRouter, Field(discriminator="kind")],
    BeforeValidator(_by_name),
]
"""A router's name, or a mapping of its `kind` and parameters."""


class ScheduledFailure(Strict):
    """Something that happens to a replica at a given time."""

    at_s: Seconds
    replica: Annotated[int, Field(ge=0, lt=MAX_REPLICAS, description="its number, from 0")]
    kind: Literal["crash", "drain"] = "crash"
    down_s: Seconds | None = Field(None, description="until it starts again; none: it does not")


class RandomFailures(Strict):
    """Crashes at random, independently on each replica."""

    mtbf_s: Interval = Field(description="mean time between failures")
    mttr_s: Seconds = Field(description="mean time to repair")


class FailuresSpec(Strict):
    """What goes wrong with replicas, and what becomes of the requests that they had."""

    scheduled: tuple[ScheduledFailure, ...] = ()
    random: RandomFailures | None = None
    in_flight: Literal["requeue", "fail"] = "requeue"
    max_requeues: Annotated[int, Field(ge=0, le=MAX_REQUEUES)] = 10


class AutoscalerSpec(Strict):
    """How many replicas a pool has, by the rule of Kubernetes' HorizontalPodAutoscaler."""

    metric: Literal["in_flight", "waiting", "kv_usage"] = "in_flight"
    target: Annotated[float, Field(gt=0, description="of the metric, a replica")]
    min_replicas: Annotated[int, Field(ge=0, le=MAX_REPLICAS)] = 1
    max_replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)]
    interval_s: Interval = 15.0
    scale_up_stabilization_s: Seconds = 0.0
    scale_down_stabilization_s: Seconds = 300.0
    tolerance: Annotated[float, Field(ge=0, lt=1)] = 0.1

    @model_validator(mode="after")
    def _in_order(self) -> "AutoscalerSpec":
        if self.min_replicas > self.max_replicas:
            raise ValueError(
                f"min_replicas {self.min_replicas} is above max_replicas {self.max_replicas}"
            )
        if self.metric == "kv_usage" and self.target > 1:
            raise ValueError(f"target {self.target} of kv_usage is above 1, all of the cache")
        return self


class PoolSpec(Strict):
    """Replicas of one kind, where they differ from the rest of the scenario."""

    name: str = ""
    replicas: Annotated[int, Field(ge=0, le=MAX_REPLICAS)] = 1
    gpu: str | None = None
    parallelism: ParallelismSpec | None = None
    policy: EnginePolicy | None = None
    startup_s: Seconds | None = None
    autoscaler: AutoscalerSpec | None = None


class ClusterSpec(Strict):
    """How many replicas, who sends requests to which, and what happens to them."""

    replicas: Annotated[int, Field(ge=0, le=MAX_REPLICAS)] = 1
    router: RouterSpec = PlainRouter(kind="round_robin")
    startup_s: Seconds = 0.0
    pools: Annotated[tuple[PoolSpec, ...], Field(min_length=1, max_length=64)] | None = None
    failures: FailuresSpec | None = None
    autoscaler: AutoscalerSpec | None = None

    @field_serializer("router")
    def _name_of_plain(self, router: PlainRouter | PrefixAwareRouter) -> Any:
        return router.kind if isinstance(router, PlainRouter) else router.model_dump(mode="json")

    @model_validator(mode="after")
    def _pools_add_up(self) -> "ClusterSpec":
        if self.pools is None:
            _check_start(self.replicas, self.autoscaler, "cluster.replicas")
            return self
        for key in ("replicas", "autoscaler"):
            if key in self.model_fields_set and getattr(self, key) is not None:
                raise ValueError(f"with pools, say cluster.{key} of each pool")
        for index, pool in enumerate(self.pools):
            _check_start(pool.replicas, pool.autoscaler, f"cluster.pools[{index}].replicas")
        total = sum(pool.replicas for pool in self.pools)
        if total > MAX_REPLICAS:
            raise ValueError(f"cluster.pools: {total} replicas in all, at most {MAX_REPLICAS}")
        return self

    @model_validator(mode="after")
    def _failures_strike_replicas(self) -> "ClusterSpec":
        pools = self.pools or (PoolSpec(replicas=self.replicas, autoscaler=self.autoscaler),)
        if self.failures is None or any(pool.autoscaler for pool in pools):
            return self
        total = sum(pool.replicas for pool in pools)
        for index, failure in enumerate(self.failures.scheduled):
            if failure.replica >= total:
                raise ValueError(
                    f"cluster.failures.scheduled[{index}].replica is {failure.replica} of {total} "
                    "replicas, which are numbered from 0"
                )
        return self


def _check_start(replicas: int, autoscaler: AutoscalerSpec | None, key: str) -> None:
    if autoscaler is None and not replicas:
        raise ValueError(f"{key} is 0 and no autoscaler starts one; give at least 1")
    if autoscaler is not None and not (
        autoscaler.min_replicas <= replicas <= autoscaler.max_replicas
    ):
        raise ValueError(
            f"{key}, {replicas} at the start, is not within the autoscaler's "
            f"{autoscaler.min_replicas} to {autoscaler.max_replicas}"
        )
