"""Aborts and crashes at random instants, put into a run of `simulate`."""

import random

import twin.engine.run as running
from twin.engine import simulate
from twin.engine.clock import URGENT
from twin.engine.reference import ReferenceEngine
from twin.engine.result import UNFINISHED

MOST_STRIKES = 60


class Chaos(ReferenceEngine):
    """A loop in which requests are aborted and replicas crash.

    `dice` is (seed, mean gap between two strikes in seconds, share of crashes).
    """

    dice = 0, 0.1, 0.0

    def run(self, horizon_s=None, progress=None):
        self.struck = {"aborted": 0, "too late": 0, "crashes": 0, "again": 0, "failed": 0}
        self._clock.process(self._strike())
        super().run(horizon_s, progress)

    def _strike(self):
        seed, mean_gap_s, crashes = self.dice
        rng = random.Random(seed)
        at_s = 0.0
        for _ in range(MOST_STRIKES):
            if self._ended == self._source.expected_requests:
                return
            at_s += rng.expovariate(1 / mean_gap_s)
            yield self._clock.at(at_s, URGENT)
            if rng.random() < crashes:
                self._crash(rng)
            else:
                self._give_one_up(rng)

    def _give_one_up(self, rng):
        here = [
            request
            for request, outcome in zip(self.requests.requests, self.requests.outcome, strict=True)
            # Mostly somebody who is still there, now and then anybody.
            if outcome == UNFINISHED or rng.random() < 0.01
        ]
        here = [request for request in here if self.requests.states[request.index] is not None]
        if not here:
            return
        request = rng.choice(here)
        if self.abort(request):
            self.struck["aborted"] += 1
            self.fail(request)
        else:
            self.struck["too late"] += 1

    def _crash(self, rng):
        self.struck["crashes"] += 1
        for state in rng.choice(self.membership.members).crash():
            if rng.random() < 0.5:
                self.struck["again"] += 1
                self.requeue([state])
            else:
                self.struck["failed"] += 1
                self.fail(state.request)


def simulate_in_chaos(scenario, engine, monkeypatch, dice):
    """Return (result, what struck, the loop)."""
    made = []

    def make(*args, **kwargs):
        loop = Chaos(*args, **kwargs)
        loop.dice = dice
        made.append(loop)
        return loop

    monkeypatch.setattr(running, "ReferenceEngine", make)
    return simulate(scenario, engine=engine), made[0].struck, made[0]
