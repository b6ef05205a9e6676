"""Our scheduler's decisions, written the way SGLang's were recorded."""

from collections.abc import Iterable
from typing import Any

from twin.request import RequestState
from twin.scheduling.sglang import SglangScheduler
from twin.scheduling.sglang.core import Launch
from twin.scheduling.sglang.job import Job
from twin.step import StepOutcome, StepPlan

Fields = dict[str, Any]

_REASONS = {"length": "FINISH_LENGTH", "stop": "FINISH_MATCHED_TOKEN", "abort": "FINISH_ABORT"}


class Observer:
    """Describes what one scheduler does, in the fields of a recording."""

    def __init__(self, scheduler: SglangScheduler) -> None:
        self._core = scheduler.core
        self._ratio_before = 0.0

    def memory(self) -> Fields:
        """Return the tokens of the pool and the reserved share of foreseen output."""
        cache = self._core.cache
        return {
            "free": cache.free,
            "evictable": cache.tree.evictable,
            "protected": cache.tree.protected,
            "ratio": round(self._core.ratio.now, 9),
        }

    def before(self) -> Fields:
        """Return what is recorded before a decision."""
        core = self._core
        self._ratio_before = core.ratio.now
        return {
            "before": self.memory(),
            "waiting_before": _names(core.waiting),
            "continuing": None if core.chunked is None else _name(core.chunked),
            "queued_results": len(core.launches),
        }

    def decision(self, plan: StepPlan, launch: Launch | None) -> Fields:
        """Return what is recorded of a decision; `launch` is what it put on its way."""
        core = self._core
        made_way = len(core.made_way)
        fields: Fields = {
            "mode": None if launch is None else _mode(launch),
            "retracted": [
                [state.request.name, state.request.prompt_tokens, state.num_output]
                for state in plan.preempted[made_way:]
            ],
            "aborted": [state.request.name for state in core.aborted],
            "chunked": None if core.chunked is None else _name(core.chunked),
            "running_after": _names(core.running),
            "waiting_after": _names(core.waiting),
            "batch_is_full": core.full,
            "after": self.memory(),
        }
        if launch is None and not core.launches:
            # An idle turn resets the ratio after it has decided that there is nothing to do.
            fields["after"]["ratio"] = round(self._ratio_before, 9)
        if made_way:
            fields["preempted"] = [[_name(job), job.state.num_output] for job in core.made_way]
        if launch is not None:
            fields["decode"] = _names(launch.decode)
        if launch is not None and launch.prefill:
            fields["prefill"] = [[_name(job), old, new] for job, old, new in launch.prefill]
            fields["new"] = [
                [_name(job), old] for job, old, _ in launch.prefill if job is not launch.continued
            ]
        return fields

    def result(self, launch: Launch) -> Fields:
        """Return what a result brings, as known before it is processed."""
        fields: Fields = {"tokens_to": [], "middle_chunk": [], "stale": []}
        for job in launch.jobs:
            if job.retracted or (job.finished and not job.middle_chunks):
                kind = "stale"
            elif job.middle_chunks:
                kind = "middle_chunk"
            else:
                kind = "tokens_to"
            fields[kind].append(_name(job))
        return fields

    @staticmethod
    def finished(outcome: StepOutcome) -> list[list[Any]]:
        """Return the requests that a result ended."""
        return [_end(state) for state in outcome.finished]


def _mode(launch: Launch) -> str:
    if not launch.prefill:
        return "DECODE"
    return "MIXED" if launch.decode else "EXTEND"


def _end(state: RequestState) -> list[Any]:
    return [state.request.name, _REASONS[state.finish_reason], state.num_output]


def _name(job: Job) -> str:
    return job.state.request.name


def _names(jobs: Iterable[Job]) -> list[str]:
    return [_name(job) for job in jobs]
