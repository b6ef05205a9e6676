"""Decisions of the unmodified vLLM 0.33.0 scheduler with two to four pipeline stages.

Recorded by driving it with the engine core's loop: an entry a schedule call (chunks by request,
preempted, free blocks, running in order, how many wait) and one a processed step (requests that
got a token, that ended, free blocks, running).
"""

import gzip
import json
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from twin.conformance.vllm.content import KeyTable, TokenContent
from twin.request import Request, RequestState
from twin.scheduling.limits import SchedulerLimits
from twin.scheduling.vllm_v1 import VllmV1Scheduler
from twin.step import StepPlan

RECORDINGS = sorted((Path(__file__).parent / "pipeline_vllm").glob("*.json.gz"))


def stem(path: Path) -> str:
    return path.name.split(".")[0]


def indices(states: list[RequestState]) -> list[int]:
    return sorted(state.request.index for state in states)


class Replay:
    """Our scheduler in the loop of vLLM's engine core."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.scheduler = VllmV1Scheduler(SchedulerLimits(**document["limits"]))
        self.in_flight: deque[StepPlan] = deque()
        self.log: list[list[Any]] = []
        table = KeyTable()
        rows = enumerate(document["requests"])
        states = [(row["before_call"], index, state_of(index, row, table)) for index, row in rows]
        self.arrivals = deque(sorted(states, key=lambda entry: entry[:2]))

    def run(self) -> list[list[Any]]:
        scheduler, calls = self.scheduler, 0
        while self.arrivals or self.in_flight or scheduler.has_requests():
            idle = not self.in_flight and not scheduler.has_requests()
            while self.arrivals and (self.arrivals[0][0] <= calls or idle):
                scheduler.add(self.arrivals.popleft()[2])
                idle = False
            if scheduler.has_requests():
                executed = self.schedule()
                calls += 1
                room = len(self.in_flight) < scheduler.queue_depth
                if room and (executed or scheduler.has_requests()):
                    continue
            if self.in_flight:
                self.update()
        return self.log

    def schedule(self) -> bool:
        scheduler = self.scheduler
        plan = scheduler.schedule()
        self.in_flight.append(plan)
        chunks = sorted([state.request.index, tokens] for state, tokens in plan.scheduled)
        state = [scheduler.free_blocks, self.running(), scheduler.num_waiting]
        self.log.append(["S", chunks, indices(plan.preempted), *state])
        return plan.total_tokens > 0

    def update(self) -> None:
        outcome = self.scheduler.update(self.in_flight.popleft())
        came = [indices(outcome.delivered), indices(outcome.finished)]
        self.log.append(["U", *came, self.scheduler.free_blocks, self.running()])

    def running(self) -> list[int]:
        return [state.request.index for state in self.scheduler.running]


def state_of(index: int, row: dict[str, Any], table: KeyTable) -> RequestState:
    return RequestState(
        Request(
            index=index,
            arrival_s=row["arrival_time"],
            prompt_tokens=len(row["prompt_token_ids"]),
            max_tokens=row["max_tokens"],
            stop_after_tokens=row["stop_at"],
            content=TokenContent(row["prompt_token_ids"], table),
            priority=row["priority"],
        )
    )


def test_the_recordings_cover_two_to_four_stages_of_both_kinds() -> None:
    kinds = {tuple(stem(path).split("_")[:2]) for path in RECORDINGS}
    assert kinds == {(f"pp{n}", kind) for n in (2, 3, 4) for kind in ("sync", "async")}
    assert len(RECORDINGS) == 14


@pytest.mark.parametrize("path", RECORDINGS, ids=stem)
def test_every_decision_is_identical(path: Path) -> None:
    document = json.loads(gzip.decompress(path.read_bytes()))
    replay = Replay(document)
    assert replay.scheduler.queue_depth == document["queue_depth"]
    for place, (got, recorded) in enumerate(zip(replay.run(), document["log"], strict=True)):
        assert got == recorded, f"entry {place}"
