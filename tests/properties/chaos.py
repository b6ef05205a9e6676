"""Aborts and crashes at random instants, put into a run of `simulate`."""

import random

import twin.engine.run as running
from twin.engine import simulate
from twin.engine.clock import URGENT
from twin.engine.reference import ReferenceEngine
from twin.request import RequestState


def chaotic_engine(seed, mean_gap_s, crashes):
    """Return an engine loop in which requests are aborted and replicas crash."""

    class Chaotic(ReferenceEngine):
        def run(self, horizon_s=None, progress=None):
            self.struck = {"aborted": 0, "too_late": 0, "crashes": 0, "lost": 0}
            self._clock.process(self._strike(random.Random(seed)))
            super().run(horizon_s, progress)

        def _strike(self, rng):
            at_s = 0.0
            while self._ended < self._source.expected_requests:
                at_s += rng.expovariate(1 / mean_gap_s)
                yield self._clock.at(at_s, URGENT)
                if rng.random() < crashes:
                    self._crash(rng)
                else:
                    self._abort(rng)

        def _abort(self, rng):
            states = [state for state in self.requests.states if state is not None]
            # Mostly somebody who is still there, now and then anybody.
            here = [s for s in states if self.requests.outcome[s.request.index] == 2] or states
            if not states:
                return
            state = rng.choice(here if rng.random() < 0.9 else states)
            index = state.request.index
            if self._replicas[self.requests.replica[index]].abort(state):
                self.struck["aborted"] += 1
                self._on_end(state.request, self._clock.now, rejected=True)
            else:
                self.struck["too_late"] += 1

        def _crash(self, rng):
            place = rng.randrange(len(self._replicas))
            self.struck["crashes"] += 1
            for state in self._replicas[place].crash():
                self.struck["lost"] += 1
                if rng.random() < 0.5:
                    again = RequestState(state.request, arrival_s=state.arrival_s)
                    there = rng.randrange(len(self._replicas))
                    self.requests.submit(again, self._replicas[there].submit(again))
                else:
                    self._on_end(state.request, self._clock.now, rejected=True)

    return Chaotic


def simulate_in_chaos(scenario, engine, monkeypatch, seed, *, mean_gap_s=0.05, crashes=0.2):
    """Return (result, what struck)."""
    kind, made = chaotic_engine(seed, mean_gap_s, crashes), []

    def make(*args, **kwargs):
        made.append(kind(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(running, "ReferenceEngine", make)
    return simulate(scenario, engine=engine), made[0].struck
