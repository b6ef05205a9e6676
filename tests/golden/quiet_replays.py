"""Recordings replayed by skipping quiet calls where there are some.

What each skipped call decides is written out, from who runs and which blocks it takes, and
compared with the recording like a call that was made.
"""

from dataclasses import asdict
from itertools import accumulate, takewhile

from twin.conformance.documents import read_document
from twin.conformance.sglang.recording import read_recording as read_sglang
from twin.conformance.sglang.replay import Replay
from twin.conformance.sglang.replay import compare as compare_turn
from twin.conformance.vllm.observer import names
from twin.conformance.vllm.recording import read_recording as read_vllm
from twin.conformance.vllm.replay import AsynchronousReplay, SynchronousReplay, compare
from twin.engine.fast import only_decodes
from twin.request import RequestState
from twin.scheduling.base import PrefixCounters

NO_LOOK_UP = asdict(PrefixCounters())


def skipping_replay(path, choose):
    """Return the replay of a recording; `choose(n)` says how many of n quiet calls to skip."""
    document, where = read_document(path), str(path)
    if "sglang_version" in document:
        return SkippingSglang(read_sglang(document, where), choose)
    recording = read_vllm(document, where)
    kind = SkippingAsynchronous if recording.limits.async_scheduling else SkippingSynchronous
    return kind(recording, choose)


def until_somebody_comes(steps, index):
    """Return how many recorded steps from `index` on follow without an arrival after it."""
    return 1 + sum(1 for _ in takewhile(lambda step: not step["added"], steps[index + 1 :]))


class Skipping:
    """What the replays share."""

    def __init__(self, recording, choose):
        super().__init__(recording)
        self.choose, self.skipped = choose, 0

    def quiet(self, index):
        """Return how many calls to skip from step `index` on."""
        calls = self._scheduler.quiet_calls()
        calls = min(calls, until_somebody_comes(self._recording.steps, index))
        return self.choose(calls) if calls > 0 else 0


class SkippingVllm(Skipping):
    """What both kinds of vLLM's recordings say of a quiet call."""

    def decisions(self, index, calls):
        """Skip; return the fields of each of the calls, and the blocks free after each."""
        scheduler, size = self._scheduler, self._recording.limits.block_size
        running, free = list(scheduler.running), scheduler.free_blocks
        computed = [state.num_computed for state in running]
        taken = scheduler.skip_calls(calls)
        self.skipped += calls
        left = [free - blocks for blocks in accumulate(taken)]
        assert left[-1] == scheduler.free_blocks
        fields = []
        for call in range(calls):
            held = {
                state.request.name: state.blocks[: -(-(tokens + call + 1) // size)]
                for state, tokens in zip(running, computed, strict=True)
            }
            logged = self._recording.steps[index + call]["block_ids"] is not None
            fields.append(
                {
                    "step": index + call,
                    "scheduled": [[name, 1] for name in names(running)],
                    "total": len(running),
                    "new": [],
                    "resumed": [],
                    "preempted": [],
                    "running_after_schedule": names(scheduler.running),
                    "waiting_after_schedule": scheduler.num_waiting,
                    "free_blocks_after_schedule": left[call],
                    "block_ids": held if logged else None,
                }
            )
        return fields

    def counts(self, free):
        scheduler = self._scheduler
        return {
            "free_blocks_after_update": free,
            "waiting_after_update": scheduler.num_waiting,
            "kv_usage": round(1.0 - free / scheduler.usable_blocks, 6),
            "prefix_cache": NO_LOOK_UP,
        }


class SkippingSynchronous(SkippingVllm, SynchronousReplay):
    def run(self):
        steps, index = self._recording.steps, 0
        while index < len(steps):
            for name in steps[index]["added"]:
                self._scheduler.add(RequestState(self._recording.requests[name]))
            calls = self.quiet(index)
            for got in self.run_ahead(index, calls) if calls else [self._step(steps[index])]:
                difference = compare(index, steps[index], got)
                if difference is not None:
                    return difference
                index += 1
        return None

    def run_ahead(self, index, calls):
        for fields in self.decisions(index, calls):
            yield {
                **fields,
                "sampled": names(self._scheduler.running),
                "finished": [],
                "running_after_update": self._scheduler.num_running,
                **self.counts(fields["free_blocks_after_schedule"]),
            }


class SkippingAsynchronous(SkippingVllm, AsynchronousReplay):
    def _iterate(self, idle, scheduling):
        calls = 0
        if scheduling and not idle and len(self._in_flight) == 1:
            plan = self._in_flight[0]
            if only_decodes(plan) and plan.samples == self._scheduler.running:
                calls = self.quiet(self._next_step)
        if not calls:
            super()._iterate(idle, scheduling)
            return
        first = self._next_step
        rows = self._iterations_by_step()
        for index, got in enumerate(self.run_ahead(first, calls), first):
            self._got = got
            if index < first + calls - 1:  # the last one is compared by the loop
                expected = {**self._recording.steps[index], "engine_iterations": rows[index]}
                assert compare(index, expected, got) is None
        self._next_step += calls
        self._processed += calls
        self._in_flight[0].index += calls

    def run_ahead(self, first, calls):
        scheduler = self._scheduler
        before = [(s.num_computed, s.num_tokens) for s in scheduler.running]
        for call, fields in enumerate(self.decisions(first, calls)):
            running, index = names(scheduler.running), first + call
            yield {
                "idle_before": False,
                "in_flight_before": [index - 1],
                "processed_before": index - 2,
                "updates_after": [self.update(index - 1, running, fields)],
                "engine_iterations": [[index, index - 1, True]],
                **fields,
                "finished_ids_sent": [],
                # Two tokens are on their way: this call's and that of the one before.
                "running_state": [
                    [name, computed + call + 1, known + call, 1 + 1, 1 + 1]
                    for name, (computed, known) in zip(running, before, strict=True)
                ],
                "stale": [],
                "will_sample": running,
            }

    def update(self, of, running, fields):
        return {
            "of": of,
            "tokens_for": running,
            "stale": [],
            "discarded": [],
            "finished": [],
            "finish_reasons": [],
            "finished_while_waiting": [],
            "running_after_update": running,
            **self.counts(fields["free_blocks_after_schedule"]),
        }


class SkippingSglang(Skipping, Replay):
    def run(self):
        steps, index = self._recording.steps, 0
        while index < len(steps):
            calls = self.quiet(index) if self.is_settled(steps[index]) else 0
            for got in self.run_ahead(index, calls) if calls else [self._turn(index, steps[index])]:
                difference = compare_turn(index, steps[index], got)
                if difference is not None:
                    return difference
                index += 1
        return compare_turn(
            len(steps) - 1, {"outputs": self._recording.outputs}, {"outputs": self._outputs()}
        )

    def is_settled(self, step):
        return not step["added"] and len(self._in_flight) == self._scheduler.queue_depth - 1

    def quiet(self, index):
        """The scheduler does not know yet who samples an EOS token; the recorder does."""
        stops, sampled = self._recording.stops, self._sampler._sampled
        left = [
            stops[name] - sampled.get(name, 0) - 1
            for name in names(self._scheduler.running)
            if name in stops
        ]
        calls = super().quiet(index)
        return max(0, min([calls, *left]))

    def run_ahead(self, first, calls):
        scheduler, core = self._scheduler, self._scheduler.core
        running, waiting = names(scheduler.running), [j.state.request.name for j in core.waiting]
        launch = core.launches[0] if core.launches else None
        ratio, page = core.ratio, self._recording.limits.page_size
        before, decay, least = self._observer.memory(), ratio.decay, ratio.least
        ratios = list(accumulate(range(calls), lambda now, _: max(now - decay, least),
                                 initial=ratio.now))  # fmt: skip
        for _ in range(calls):
            self._sampler.reveal(launch or _Batch(core.running))
        available = core.cache.available
        taken = scheduler.skip_calls(calls)
        self.skipped += calls
        ahead = len(self._in_flight)
        for call, used in enumerate(accumulate(taken)):
            step = self._recording.steps[first + call]
            last = call == calls - 1
            memory = self.memory(available - used * page, ratios[call + 1], step["after"], last)
            got = {
                "i": first + call,
                "clock": self._clock,
                "added": [],
                "before": before,
                "waiting_before": waiting,
                "continuing": None,
                "queued_results": ahead,
                "mode": "DECODE",
                "retracted": [],
                "aborted": [],
                "chunked": None,
                "running_after": running,
                "waiting_after": waiting,
                "batch_is_full": core.full,
                "after": memory,
                "decode": running,
                "batch_launch": self._launches,
                "processed": [
                    {
                        "launch": self._launches - ahead,
                        "tokens_to": running,
                        "middle_chunk": [],
                        "stale": [],
                    }
                ],
                "finished": [],
                "end": memory,
            }
            got |= {key: value for key, value in _ABSENT_OR_EMPTY.items() if key in step}
            before = memory
            self._launches += 1
            self._clock += 1
            yield got
        if self._in_flight:
            plan, _ = self._in_flight.pop()
            self._in_flight.append((plan, self._launches - 1))

    def memory(self, available, ratio, recorded, last):
        """Return the memory after a turn; how it is split is known after the last one alone."""
        if last:
            memory = self._observer.memory()
            assert memory["free"] + memory["evictable"] == available
            return memory
        assert recorded["free"] + recorded["evictable"] == available
        free, evictable = recorded["free"], recorded["evictable"]
        protected = self._scheduler.core.cache.tree.protected
        return {
            "free": free, "evictable": evictable, "protected": protected, "ratio": round(ratio, 9)
        }  # fmt: skip


class _Batch:
    """A decode batch as the sampler sees it."""

    def __init__(self, jobs):
        self.jobs = jobs


_ABSENT_OR_EMPTY = {"idle": False, "preempted": []}
