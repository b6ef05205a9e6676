"""Our scheduler's decisions, written the way vLLM's were recorded."""

from dataclasses import asdict
from typing import Any

from twin.request import RequestState, Status
from twin.scheduling.base import PrefixCounters
from twin.scheduling.vllm_v1 import VllmV1Scheduler
from twin.step import StepOutcome, StepPlan

Fields = dict[str, Any]


def names(states: list[RequestState]) -> list[str]:
    """Return the ids of requests, in order."""
    return [state.request.name for state in states]


class Observer:
    """Describes what one scheduler does, in the fields of a recording."""

    def __init__(self, scheduler: VllmV1Scheduler) -> None:
        self._scheduler = scheduler
        self._counted = PrefixCounters()

    def schedule(self, plan: StepPlan, *, log_block_ids: bool) -> Fields:
        """Return what both schemas record of a schedule call."""
        scheduler = self._scheduler
        return {
            "step": plan.index,
            "scheduled": [[state.request.name, tokens] for state, tokens in plan.scheduled],
            "total": plan.total_tokens,
            "new": [[state.request.name, hit] for state, hit in plan.admitted],
            "resumed": [],
            "preempted": sorted(names(plan.preempted)),
            "running_after_schedule": names(scheduler.running),
            "waiting_after_schedule": scheduler.num_waiting,
            "free_blocks_after_schedule": scheduler.free_blocks,
            "block_ids": _block_ids(plan) if log_block_ids else None,
        }

    def asynchronous(self, plan: StepPlan, known: list[RequestState]) -> Fields:
        """Return what schema 2 records besides; `known` are the requests added so far."""
        return {
            "finished_ids_sent": sorted(names(plan.finished_sent)),
            "running_state": [_state(state) for state in self._scheduler.running],
            "stale": sorted(_stale(known)),
            "will_sample": names(plan.samples),
        }

    def counts(self) -> Fields:
        """Return what both schemas record of the blocks and counters after an update."""
        scheduler = self._scheduler
        usage = 1.0 - scheduler.free_blocks / scheduler.usable_blocks
        now, before = asdict(scheduler.prefix), asdict(self._counted)
        self._counted = PrefixCounters(**now)
        return {
            "free_blocks_after_update": scheduler.free_blocks,
            "waiting_after_update": scheduler.num_waiting,
            "kv_usage": round(usage, 6),
            "prefix_cache": {key: now[key] - before[key] for key in now},
        }

    def update(self, plan: StepPlan, outcome: StepOutcome, stale: list[str]) -> Fields:
        """Return one entry of schema 2's `updates_after`; `stale` as before the update."""
        return {
            "of": plan.index,
            "tokens_for": names(outcome.delivered),
            "stale": stale,
            "discarded": names(outcome.discarded),
            "finished": names(outcome.finished),
            "finish_reasons": [state.finish_reason for state in outcome.finished],
            "finished_while_waiting": names(outcome.finished_waiting),
            "running_after_update": names(self._scheduler.running),
            **self.counts(),
        }


def stale_outputs(plan: StepPlan) -> list[str]:
    """Return the ids whose part of a plan is stale, those of half-done prefills included.

    (`StepOutcome.stale` holds only those that brought a token.)
    """
    return [
        state.request.name
        for (state, _), epoch in zip(plan.scheduled, plan.epochs, strict=True)
        if epoch != state.preemptions and state.status is not Status.FINISHED
    ]


def _block_ids(plan: StepPlan) -> dict[str, list[int]]:
    return {state.request.name: list(state.blocks) for state, _ in plan.scheduled}


def _state(state: RequestState) -> list[Any]:
    return [
        state.request.name,
        state.num_computed,
        state.num_tokens,
        state.placeholders,
        state.in_flight,
    ]


def _stale(known: list[RequestState]) -> list[list[Any]]:
    """Return [id, tokens] of the requests whose tokens in flight are stale."""
    return [
        [state.request.name, state.in_flight]
        for state in known
        if state.in_flight and state.preemptions and not state.num_computed
    ]
