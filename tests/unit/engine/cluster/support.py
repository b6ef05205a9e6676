"""A cluster of replicas with constant step times, and requests given as a list."""

import numpy as np

from tests.unit.engine.support import NO_HOST, ConstantTimer, ListSource, limits
from twin.cluster import AutoscalerSpec, FailuresSpec
from twin.engine.clock import Clock
from twin.engine.cluster.autoscaler import autoscale
from twin.engine.cluster.failures import Failures
from twin.engine.cluster.pool import Pool
from twin.engine.gpu import OneStage
from twin.engine.reference import ReferenceEngine
from twin.engine.replica import Replica
from twin.engine.result import CLUSTER_EVENTS
from twin.engine.routers.least_requests import LeastRequests
from twin.request import Request
from twin.scheduling import VllmV1Scheduler

STEP_S = 1.0


def asks(*specs):
    """Requests of (arrival, answer tokens)."""
    return [Request(i, at, 8, answer) for i, (at, answer) in enumerate(specs)]


class Run:
    """One run; `failures` and `autoscaler` as a scenario has them."""

    def __init__(self, requests, replicas=1, failures=None, autoscaler=None, **more):
        self.clock, self.built = Clock(), []
        startup_s, horizon_s = more.pop("startup_s", 0.0), more.pop("horizon_s", None)
        react = more.pop("react", None)
        policy = limits(**more)

        def build(number, first_core):
            self.built.append(number)
            gpu = OneStage(ConstantTimer(STEP_S))
            return Replica(self.clock, first_core, VllmV1Scheduler(policy), gpu, NO_HOST)

        rule = AutoscalerSpec(**autoscaler) if autoscaler else None
        pool = Pool(replicas, build, policy.fits, startup_s=startup_s, autoscaler=rule)
        self.source = ListSource(requests, react)
        self.engine = ReferenceEngine(self.clock, [pool], LeastRequests(), self.source, NO_HOST)
        if failures:
            spec = FailuresSpec.model_validate(failures)
            Failures(self.clock, spec, self.engine, np.random.SeedSequence(3))
        autoscale(self.clock, self.engine)
        self.engine.run(horizon_s)
        self.table = self.engine.requests.table()

    @property
    def events(self):
        """(time, replica, what) of all that happened to replicas."""
        table = self.engine.membership.events.table()
        names = [CLUSTER_EVENTS[code] for code in table.what.tolist()]
        return list(zip(table.time_s.tolist(), table.replica.tolist(), names, strict=True))

    @property
    def paid_s(self):
        return self.engine.membership.table().paid_s.tolist()
