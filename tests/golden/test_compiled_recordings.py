"""Recorded decisions of vLLM through the compiled scheduler.

It takes every call beside the plain one, which is compared with the recording, and must agree with
it after each: plan, queues, KV blocks by number, what each request has computed and said.
"""

import pytest

pytest.importorskip("numba")

from tests.golden.test_vllm_recordings import RECORDINGS, STEPS, stem
from twin.conformance import replay_file
from twin.conformance.vllm import replay
from twin.engine.compiled import process, schedule
from twin.engine.compiled.fleet import CompiledFleet
from twin.engine.compiled.queue import drain
from twin.scheduling import VllmV1Scheduler


class NoTimer:
    """Nobody asks for durations."""

    mixed_sizes = ()
    extra_s = gap_s = gap_per_seq_s = tail = 0.0


class NoHost:
    """Nor for what the host takes."""

    schedule_s = schedule_per_seq_s = update_s = update_per_seq_s = wake_s = 0.0


class Member:
    """A replica in name."""

    index = 0


class Shadowed(VllmV1Scheduler):
    """The plain scheduler, with the compiled one beside it."""

    calls = 0

    def __init__(self, limits):
        super().__init__(limits)
        self.fleet = CompiledFleet(limits, NoTimer(), NoHost())
        self.row = self.fleet.add(Member())
        self.states = {}

    @property
    def replica(self):
        return self.fleet.state.replica[self.row]

    def add(self, state):
        super().add(state)
        self.states[state.request.index] = state
        self.fleet.submit(self.row, self.fleet.take(state), 0.0)
        drain(self.fleet.table(), self.row)

    def schedule(self):
        plan = super().schedule()
        replica = self.replica
        if not replica["flights"]:
            replica["oldest"] = 0
        replica["slot"] = 1 - replica["oldest"] if replica["flights"] else 0
        schedule.schedule(self.fleet.table(), self.row)
        replica["flights"] += 1
        self._compare_plan(plan)
        self._compare()
        return plan

    def update(self, plan):
        outcome = super().update(plan)
        replica = self.replica
        self.fleet._grow()  # the logs; the loop does it otherwise
        process.process(self.fleet.table(), self.row, 0.0)
        replica["flights"] -= 1
        replica["oldest"] = 1 - replica["oldest"] if self.limits.async_scheduling else 0
        self._compare()
        return outcome

    def _compare_plan(self, plan):
        type(self).calls += 1
        flight = self.fleet.state.flight[self.row, self.replica["slot"]]
        entries = self.fleet.state.plan[self.row, self.replica["slot"], : flight["count"]]
        ours = list(zip(entries["row"].tolist(), entries["tokens"].tolist(), strict=True))
        assert ours == [(state.request.index, tokens) for state, tokens in plan.scheduled]
        samples = entries["row"][entries["samples"] > 0].tolist()
        assert samples == [state.request.index for state in plan.samples]
        assert flight["tokens"] == plan.total_tokens
        assert self.replica["preempted"] == len(plan.preempted)

    def _compare(self):
        core, table = self.core, self.fleet.state.request
        running = self.fleet.state.running[self.row, : self.replica["running"]]
        assert running.tolist() == [state.request.index for state in core.running]
        assert self._waiting() == [state.request.index for state in core.waiting]
        assert self.replica["free_blocks"] == core.pool.num_free
        assert bool(self.replica["unsent"]) == bool(core.unsent)
        for state in core.running:
            row = table[state.request.index]
            blocks = self.fleet.state.table_block[row["place"] : row["place"] + row["blocks"]]
            assert blocks.tolist() == state.blocks
            ours = [int(row[name]) for name in ("computed", "output", "placeholders", "in_flight")]
            theirs = [state.num_computed, state.num_output, state.placeholders, state.in_flight]
            assert ours == theirs
            assert row["cached_blocks"] == state.num_cached_blocks or not self.prefix_key_tokens

    def _waiting(self):
        found, row = [], int(self.replica["first"])
        while row >= 0:
            found.append(row)
            row = int(self.fleet.state.request["after"][row])
        return found


@pytest.mark.parametrize("path", RECORDINGS, ids=stem)
def test_every_call_is_the_plain_schedulers(path, monkeypatch):
    monkeypatch.setattr(replay, "VllmV1Scheduler", Shadowed)
    monkeypatch.setattr(Shadowed, "calls", 0)
    report = replay_file(path)
    assert report.first_difference is None
    assert Shadowed.calls == STEPS[stem(path)]
