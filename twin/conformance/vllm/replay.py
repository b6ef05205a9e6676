"""Driving our scheduler as the recorded engine was driven, and comparing every step."""

from collections import deque
from typing import Any

from twin.conformance.report import ConformanceReport, StepDifference
from twin.conformance.vllm.observer import Fields, Observer, names, stale_outputs
from twin.conformance.vllm.recording import Recording, read_recording
from twin.request import RequestState
from twin.scheduling.vllm_v1 import VllmV1Scheduler
from twin.step import StepPlan

_ITERATIONS = "engine_iterations"


def replay_vllm(document: dict[str, Any], where: str) -> ConformanceReport:
    """Replay a recording of vLLM; see `twin.conformance.replay.replay_file`."""
    recording = read_recording(document, where)
    replay = AsynchronousReplay if recording.limits.async_scheduling else SynchronousReplay
    difference = replay(recording).run()
    return ConformanceReport(
        name=where,
        engine=recording.engine,
        steps=len(recording.steps),
        identical=len(recording.steps) if difference is None else difference.step,
        first_difference=difference,
    )


class SynchronousReplay:
    """Schedule, then update, once a recorded step."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._scheduler = VllmV1Scheduler(recording.limits)
        self._observer = Observer(self._scheduler)

    def run(self) -> StepDifference | None:
        """Return the first step that differs, or None."""
        for index, step in enumerate(self._recording.steps):
            for name in step["added"]:
                self._scheduler.add(RequestState(self._recording.requests[name]))
            difference = compare(index, step, self._step(step))
            if difference is not None:
                return difference
        return None

    def _step(self, step: Fields) -> Fields:
        scheduler, observer = self._scheduler, self._observer
        plan = scheduler.schedule()
        got = observer.schedule(plan, log_block_ids=step["block_ids"] is not None)
        outcome = scheduler.update(plan)
        return {
            **got,
            "sampled": names(outcome.delivered),
            "finished": names(outcome.finished),
            "running_after_update": scheduler.num_running,
            **observer.counts(),
        }


class AsynchronousReplay:
    """The loop of vLLM's engine core with a queue of steps in flight.

    An iteration schedules while the queue has room and there are requests or finished ids not
    yet sent; if the queue then still has room and there is more to do it ends there, else it
    processes the oldest step. What is processed between two schedule calls belongs to the first.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._scheduler = VllmV1Scheduler(recording.limits)
        self._observer = Observer(self._scheduler)
        self._in_flight: deque[StepPlan] = deque()
        self._known: list[RequestState] = []
        self._processed = -1
        self._next_step = 0
        self._got: Fields = {}

    def run(self) -> StepDifference | None:
        """Return the first step that differs, or None."""
        steps = self._recording.steps
        expected = [
            {**step, _ITERATIONS: rows}
            for step, rows in zip(steps, self._iterations_by_step(), strict=True)
        ]
        while True:
            idle = not self._in_flight and not self._scheduler.has_requests()
            if idle and self._next_step == len(steps):
                break
            self._drain(idle)
            scheduling = self._scheduler.has_requests()
            if scheduling and self._next_step:
                last = self._next_step - 1
                difference = compare(last, expected[last], self._got)
                if difference is not None:
                    return difference
            if scheduling and self._next_step == len(steps):
                return _differs(self._next_step - 1, "ends here", "has requests left")
            if idle and not scheduling:
                return _differs(self._next_step, "schedules", "has nothing left to do")
            self._iterate(idle, scheduling)
        return compare(len(steps) - 1, expected[-1], self._got)

    def _drain(self, idle: bool) -> None:
        """Add what arrived before the next schedule call; an idle engine waits for it."""
        steps, index = self._recording.steps, self._next_step
        if index == len(steps) or (steps[index]["idle_before"] and not idle):
            return
        for name in steps[index]["added"]:
            state = RequestState(self._recording.requests[name])
            self._known.append(state)
            self._scheduler.add(state)

    def _iterate(self, idle: bool, scheduling: bool) -> None:
        executed = False
        scheduled: int | None = None
        if scheduling:
            plan = self._schedule(idle)
            scheduled, executed = plan.index, plan.total_tokens > 0
            room = len(self._in_flight) < self._scheduler.queue_depth
            if room and (executed or self._scheduler.has_requests()):
                self._got[_ITERATIONS].append([scheduled, None, executed])
                return
        processed = self._process() if self._in_flight else None
        self._got[_ITERATIONS].append([scheduled, processed, executed])

    def _schedule(self, idle: bool) -> StepPlan:
        step = self._recording.steps[self._next_step]
        before = {
            "idle_before": idle,
            "in_flight_before": [plan.index for plan in self._in_flight],
            "processed_before": self._processed,
            "updates_after": [],
            _ITERATIONS: [],
        }
        plan = self._scheduler.schedule()
        self._in_flight.append(plan)
        self._next_step += 1
        logged = step["block_ids"] is not None
        self._got = {
            **before,
            **self._observer.schedule(plan, log_block_ids=logged),
            **self._observer.asynchronous(plan, self._known),
        }
        return plan

    def _process(self) -> int:
        plan = self._in_flight.popleft()
        stale = stale_outputs(plan)
        outcome = self._scheduler.update(plan)
        self._processed = plan.index
        self._got["updates_after"].append(self._observer.update(plan, outcome, stale))
        return plan.index

    def _iterations_by_step(self) -> list[list[Any]]:
        """Split `engine_iterations` at the iterations that schedule."""
        groups: list[list[Any]] = []
        for row in self._recording.iterations:
            if row[0] is not None:
                groups.append([])
            groups[-1].append(row)
        return groups


def _differs(step: int, expected: str, got: str) -> StepDifference:
    return StepDifference(step, {"engine": expected}, {"engine": got})


def compare(index: int, expected: Fields, got: Fields) -> StepDifference | None:
    """Return the fields of a step that differ, or None."""
    differing = [key for key in got if got[key] != expected[key]]
    if not differing:
        return None
    return StepDifference(
        index,
        {key: expected[key] for key in differing},
        {key: got[key] for key in differing},
    )
