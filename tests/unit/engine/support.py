"""A replica with constant step times and a workload given as a list."""

from collections.abc import Callable, Sequence

from hwmodels.host import HostCosts
from twin.engine.clock import Clock
from twin.engine.cluster.pool import pool_of
from twin.engine.gpu import OneStage, Pipeline
from twin.engine.reference import ReferenceEngine
from twin.engine.replica import Replica
from twin.engine.routers import RoundRobin
from twin.llm.pipeline_timer import PipelineTimer
from twin.llm.step_time import StepTime
from twin.request import Request
from twin.scheduling import SCHEDULERS
from twin.scheduling.limits import SchedulerLimits

NO_HOST = HostCosts(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, source="test")


class ConstantTimer:
    """Every batch takes the same time."""

    def __init__(self, seconds: float) -> None:
        self.step = StepTime(
            seconds=seconds,
            bound=1,
            by_bound=(0.0, seconds, 0.0, 0.0),
            by_source=(0.0, 0.0, seconds, 0.0),
        )

    def time(self, shape):
        assert shape.num_tokens > 0
        return self.step


class ListSource:
    """Requests known from the start, plus an optional reaction to each end."""

    def __init__(
        self,
        requests: Sequence[Request],
        react: Callable[[Request, float, bool], Sequence[Request]] | None = None,
    ) -> None:
        self.requests = list(requests)
        self.react = react
        self.ends: list[tuple[int, float, bool]] = []

    @property
    def expected_requests(self):
        return None

    def start(self):
        return self.requests

    def on_end(self, request, end_s, *, rejected):
        self.ends.append((request.index, end_s, rejected))
        return self.react(request, end_s, rejected) if self.react else []


def limits(**changes) -> SchedulerLimits:
    values = {
        "max_num_seqs": 8,
        "max_num_batched_tokens": 512,
        "max_model_len": 512,
        "block_size": 16,
        "num_gpu_blocks": 257,
        "async_scheduling": False,
        **changes,
    }
    return SchedulerLimits(**values)


class NoLink:
    """Stages that hand over at once."""

    def transfer_s(self, tokens):
        assert tokens > 0
        return 0.0

    def feedback_s(self, sampled_seqs):
        assert sampled_seqs > 0
        return 0.0


def gpus(step_s, stage_s, policy):
    """A stage that takes `step_s`, or as many as `stage_s` has times."""
    if not stage_s:
        return OneStage(ConstantTimer(step_s))
    timer = PipelineTimer([ConstantTimer(seconds) for seconds in stage_s], NoLink())
    return Pipeline(timer, feeds_back=policy.async_scheduling)


def run(source, step_s=1.0, host=NO_HOST, replicas=1, horizon_s=None, stage_s=(), **changes):
    """Run to the end; return (engine, replicas, clock)."""
    changes = {"pipeline_stages": max(1, len(stage_s)), **changes}
    clock, policy = Clock(), limits(**changes)
    engines = [
        Replica(clock, i, SCHEDULERS["vllm"](policy), gpus(step_s, stage_s, policy), host)
        for i in range(replicas)
    ]
    engine = ReferenceEngine(clock, [pool_of(engines, policy.fits)], RoundRobin(), source, host)
    engine.run(horizon_s)
    return engine, engines, clock
