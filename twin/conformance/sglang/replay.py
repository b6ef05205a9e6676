"""Driving our scheduler as the recorded loop was driven, and comparing every turn."""

from collections import deque
from typing import Any

from twin.conformance.report import ConformanceReport, StepDifference
from twin.conformance.sglang.observer import Fields, Observer
from twin.conformance.sglang.recording import Recording, read_recording
from twin.conformance.sglang.sampler import Sampler
from twin.request import RequestState
from twin.scheduling.sglang import SglangScheduler
from twin.step import StepPlan

_ABSENT = "(absent)"


def replay_sglang(document: dict[str, Any], where: str) -> ConformanceReport:
    """Replay a recording of SGLang; see `twin.conformance.replay.replay_file`."""
    recording = read_recording(document, where)
    difference = Replay(recording).run()
    return ConformanceReport(
        name=where,
        engine=recording.engine,
        steps=len(recording.steps),
        identical=len(recording.steps) if difference is None else difference.step,
        first_difference=difference,
    )


class Replay:
    """The loop of SGLang's scheduler.

    A turn takes what has arrived, decides and launches a batch, and then processes the result
    of the turn before (overlap) or its own. The clock goes on by one a turn; an idle loop sleeps
    until the next arrival.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._scheduler = SglangScheduler(recording.limits)
        self._observer = Observer(self._scheduler)
        self._sampler = Sampler(recording.stops, recording.limits.key_tokens)
        self._states: dict[str, RequestState] = {}
        self._in_flight: deque[tuple[StepPlan, int]] = deque()
        self._launches = 0
        self._clock = 0

    def run(self) -> StepDifference | None:
        """Return the first turn that differs, or None.

        A difference in what became of the requests belongs to the last turn.
        """
        steps = self._recording.steps
        for index, step in enumerate(steps):
            difference = compare(index, step, self._turn(index, step))
            if difference is not None:
                return difference
        ends = {"outputs": self._recording.outputs}
        return compare(len(steps) - 1, ends, {"outputs": self._outputs()})

    def _turn(self, index: int, step: Fields) -> Fields:
        observer, scheduler = self._observer, self._scheduler
        for name in step["added"]:
            state = self._states[name] = RequestState(self._recording.requests[name])
            scheduler.add(state)
        got: Fields = {"i": index, "clock": self._clock, "added": step["added"]}
        got.update(observer.before())
        plan = scheduler.schedule()
        launch = scheduler.core.launches[-1] if plan.total_tokens else None
        got.update(observer.decision(plan, launch))
        if launch is not None:
            got["batch_launch"] = self._launches
            self._in_flight.append((plan, self._launches))
            self._launches += 1
        depth = scheduler.queue_depth
        results = len(self._in_flight) - (depth - 1 if launch is not None else 0)
        got["processed"], got["finished"] = [], []
        for _ in range(results):
            self._process(got)
        idle = launch is None and not got["processed"]
        if idle or "idle" in step:
            got["idle"] = idle
        if "preempted" in step:
            got.setdefault("preempted", [])
        got["end"] = observer.memory()
        self._advance(idle)
        return got

    def _process(self, got: Fields) -> None:
        plan, number = self._in_flight.popleft()
        launch = self._scheduler.core.launches[0]
        result = self._observer.result(launch)
        self._sampler.reveal(launch)
        outcome = self._scheduler.update(plan)
        got["processed"].append({"launch": number, **result})
        got["finished"] += self._observer.finished(outcome)

    def _advance(self, idle: bool) -> None:
        """Move the clock to the next turn."""
        arrivals = self._recording.arrivals
        coming = [step for name, step in arrivals.items() if name not in self._states]
        if idle and coming:
            self._clock = max(self._clock + 1, min(coming))
        else:
            self._clock += 1

    def _outputs(self) -> dict[str, list[int]]:
        outputs: dict[str, list[int]] = {}
        for name, state in self._states.items():
            request = state.request
            limit = self._recording.limits.max_new_tokens(request)
            cached = max(state.cached_tokens, 0)
            outputs[name] = [
                request.prompt_tokens,
                state.num_output,
                limit,
                state.preemptions,
                cached,
            ]
        return outputs


def compare(index: int, expected: Fields, got: Fields) -> StepDifference | None:
    """Return the fields of a turn that differ, or None; a field on one side only differs."""
    keys = [*expected, *(key for key in got if key not in expected)]
    differing = [key for key in keys if expected.get(key, _ABSENT) != got.get(key, _ABSENT)]
    if not differing:
        return None
    return StepDifference(
        index,
        {key: expected.get(key, _ABSENT) for key in differing},
        {key: got.get(key, _ABSENT) for key in differing},
    )
