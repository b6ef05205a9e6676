"""An engine core whose requests stay untouched while they decode.

It has a `LazyCore` as long as that covers what happens, from an idle engine on. When it does not
(KV blocks run short, a request with content comes), its requests are handed over as they stand
to the plain scheduler, which goes on until the engine is idle again.
"""

from collections import deque
from collections.abc import Generator, Sequence

from hwmodels.host import HostCosts
from twin.engine.clock import Clock, Event
from twin.engine.fast import FEWEST_STEPS, FastReplica, Ride
from twin.engine.lazy.core import Call, LazyCore
from twin.engine.lazy.handover import Flight, hand_over
from twin.engine.lazy.heard import Heard
from twin.engine.recorder import RequestRecorder
from twin.engine.replica import NOTHING_SCHEDULED_S
from twin.engine.serving import OnEnd
from twin.engine.step_recorder import BlockRun, StepRecorder
from twin.llm.step_time import StepTimer
from twin.request import Request, RequestState
from twin.scheduling import VllmV1Scheduler
from twin.step import BatchShape


def _nobody(request: Request, end_s: float) -> None:
    """Hears of ends before the replica runs."""
    raise RuntimeError(f"request {request.index} ended at {end_s} in a replica that doesn't run")


def _tokens_of(call: Call) -> int:
    """Return the tokens that a call brings and somebody takes."""
    return call.decodes - len(call.extra) + len(call.firsts)


class LazyReplica(FastReplica):
    """As `FastReplica`, for vLLM serving first come first served.

    Args:
        clock, index, scheduler, timer, host: see `FastReplica`.
    """

    def __init__(
        self,
        clock: Clock,
        index: int,
        scheduler: VllmV1Scheduler,
        timer: StepTimer,
        host: HostCosts,
    ) -> None:
        super().__init__(clock, index, scheduler, timer, host)
        self._vllm = scheduler
        self._lazy: LazyCore | None = None
        self._flights: deque[Flight] = deque()
        self._awaited: Flight | None = None
        self._seen_content = False
        self._heard = Heard(index)
        self._on_end: OnEnd = _nobody

    @property
    def load_requests(self) -> int:
        """See `Replica.load_requests`."""
        core = self._lazy
        held = 0 if core is None else len(core.running) + len(core.waiting)
        return super().load_requests + held

    @property
    def waiting_requests(self) -> int:
        """See `Replica.waiting_requests`."""
        core = self._lazy
        return super().waiting_requests + (0 if core is None else len(core.waiting))

    @property
    def used_blocks(self) -> int:
        """See `Replica.used_blocks`."""
        core, ride = self._lazy, self._ride
        if core is None:
            return super().used_blocks
        calls = 0 if ride is None else self._calls_made(ride)
        taken = core.batch.blocks_of_run(core.call, calls)
        return self._vllm.usable_blocks - core.free_blocks + taken

    def _cached_keys(self, keys: Sequence[int]) -> int:
        # As long as it is lazy nothing with content has been here.
        return 0 if self._lazy is not None else super()._cached_keys(keys)

    def _ridden_tokens(self, ride: Ride) -> int:
        core, seen = self._lazy, self._seen(ride)
        if core is None or not seen:
            return super()._ridden_tokens(ride)
        seqs = core.batch.seqs
        first = _tokens_of(self._flights[0].call) if self._flights else seqs
        return first + (seen - 1) * seqs

    def run(
        self, requests: RequestRecorder, steps: StepRecorder, on_end: OnEnd
    ) -> Generator[Event, None, None]:
        """See `Replica.run`."""
        self._on_end = on_end
        return super().run(requests, steps, on_end)

    def crash(self) -> list[RequestState]:
        """See `Replica.crash`."""
        lost = super().crash()
        self._seen_content = False
        self._heard.forget()
        return lost

    def _stop(self) -> None:
        """See `FastReplica._stop`; a lazy core hands over, in the middle of an iteration or not."""
        core, ride = self._lazy, self._ride
        if core is None or self._served is None:
            super()._stop()
            return
        requests, steps, _ = self._served
        if ride is not None:
            before = self._begun(ride) - 1
            ride.keep(ride, before, before)
            core.fits_call()
            call_s = float(ride.times.call_s[before])
            _, launched_s = self._decide(core, call_s, (requests, steps))
            self._end_ride(ride, self._flights[0].out_s(self._host, launched_s))
        elif self._awaited is not None:
            self._flights.appendleft(self._awaited)
            self._awaited = None
        self._leave(core, requests)

    def _hurry(
        self, requests: RequestRecorder, steps: StepRecorder
    ) -> Generator[Event, None, None] | None:
        core = self._vllm.core
        idle = not (self._in_flight or core.running or core.unsent or len(core.waiting))
        if idle and self._inbox_is_plain() and self.delivery is None and self._covered():
            return self._serve(requests, steps)
        return super()._hurry(requests, steps)

    def _drain(self) -> None:
        if any(state.request.content is not None for state in self._inbox):
            self._seen_content = True
        super()._drain()

    def _covered(self) -> bool:
        """Whether a lazy core can serve under this policy."""
        limits = self._vllm.limits
        return (
            limits.eviction == "lru"  # others rank blocks by what happened before it took over
            and limits.scheduling_policy == "fcfs"
            and not limits.long_prefill_token_threshold
            and limits.pipeline_stages == 1
        )

    def _inbox_is_plain(self) -> bool:
        """Whether there are requests, and nothing that a later one could hit in the cache."""
        if self._seen_content or not self._inbox:
            return False
        return all(state.request.content is None for state in self._inbox)

    def _serve(
        self, requests: RequestRecorder, steps: StepRecorder
    ) -> Generator[Event, None, None]:
        """Serve until the engine is idle, or somebody else has to go on."""
        scheduler, clock, flights = self._vllm, self._clock, self._flights
        limits, record = scheduler.limits, (requests, steps)
        core = self._lazy = LazyCore(
            limits, scheduler.free_blocks, scheduler.prefix, scheduler.next_call
        )
        while flights or self._inbox or core.has_requests():
            if not self._take(core) or not core.fits_call():
                break
            executed = False
            now = clock.now
            if core.has_requests():
                ride = self._start(core, record)
                if ride is not None:
                    yield from self._walk(ride)
                    if self._lazy is not core:
                        return
                    continue
                executed, now = self._decide(core, now, record)
                if len(flights) < limits.queue_depth and (executed or core.has_unfinished()):
                    then_s = now if executed else now + NOTHING_SCHEDULED_S
                    if not clock.jump(then_s):
                        yield clock.at(then_s)
                        if self._lazy is not core:
                            return
                    continue
            if flights:
                flight = flights.popleft()
                out_s = flight.out_s(self._host, now)
                if not clock.jump(out_s):
                    self._awaited = flight
                    yield clock.at(out_s)
                    if self._lazy is not core:
                        yield from self._go_on(executed)
                        return
                    self._awaited = None
                self._see(core, flight, requests)
            if not executed and core.has_unfinished():
                then_s = clock.now + NOTHING_SCHEDULED_S
                if not clock.jump(then_s):
                    yield clock.at(then_s)
                    if self._lazy is not core:
                        return
        self._leave(core, requests)

    def _leave(self, core: LazyCore, requests: RequestRecorder) -> None:
        """Let the plain scheduler go on."""
        self._lazy = None
        self._heard.note(core, requests)
        self._in_flight.extend(hand_over(core, self._flights, self._vllm))
        self._flights.clear()

    def _go_on(self, executed: bool) -> Generator[Event, None, None]:
        """Do the rest of an iteration whose core has handed over meanwhile."""
        self._process_next()
        if not executed and self._vllm.has_unfinished():
            yield self._clock.at(self._clock.now + NOTHING_SCHEDULED_S)

    def _take(self, core: LazyCore) -> bool:
        """Queue what has come; False: it is not for a lazy core."""
        if not self._inbox:
            return True
        if any(state.request.content is not None for state in self._inbox):
            return False
        for state in self._inbox:
            state.output_limit = core.limits.output_limit(state.request)
            core.waiting.append(state)
        self._inbox.clear()
        return True

    def _start(self, core: LazyCore, record: tuple[RequestRecorder, StepRecorder]) -> Ride | None:
        """Return the run of decode steps that begins now, if there is one."""
        flights, seqs = self._flights, core.batch.seqs
        if len(flights) != core.limits.queue_depth - 1:
            return None
        flying = None
        if flights:
            flight = flights[0]
            if flight.empty or flight.call.lasts or flight.call.extra:
                return None
            flying = flight.end_s, flight.call.seqs
        calls = core.quiet_calls()
        if calls < FEWEST_STEPS:
            return None

        def keep(ride: Ride, launched: int, seen: int) -> None:
            self._keep_lazily(core, ride, (launched, seen), record)

        first = BatchShape((), seqs, core.batch.kv_tokens + seqs, 0, seqs)
        return self._ride_ahead(first, calls, flying, keep)

    def _decide(
        self, core: LazyCore, now: float, record: tuple[RequestRecorder, StepRecorder]
    ) -> tuple[bool, float]:
        """Take the next call and put it on the GPU; return (it runs tokens, launch time)."""
        call = core.decide()
        launched_s = now + self._host.launch_s(call.seqs)
        shape = call.shape
        if shape is None:
            self._flights.append(Flight(call, launched_s, empty=True))
            return False, launched_s
        start_s, end_s, duration = self._stage.run(shape, launched_s, call.number)
        self._flights.append(Flight(call, end_s, empty=False))
        requests, steps = record
        if call.admitted:
            requests.admit([job.state for job in call.admitted], now)
        tokens = call.decodes + sum(tokens for _, tokens in call.chunks)
        steps.record(
            now,
            start_s,
            end_s,
            (
                self.index, tokens - shape.decode_seqs, shape.decode_seqs, len(core.running),
                len(core.waiting), self._vllm.usable_blocks - core.free_blocks, 0, duration.bound,
            ),
        )  # fmt: skip
        self._count_sources(duration.by_source)
        return True, launched_s

    def _see(self, core: LazyCore, flight: Flight, requests: RequestRecorder) -> None:
        """Process a step's output."""
        now, call = self._clock.now, flight.call
        self._held_tokens += _tokens_of(call)
        self._heard.step(call, now, requests)
        if call.lasts:
            lasts = sorted(call.lasts, key=lambda job: job.order)
            core.finish(lasts)
            for job in lasts:
                self._held_tokens -= job.state.num_tokens
                index = job.state.request.index
                requests.output_tokens[index] = job.state.output_limit
                requests.last_token_s[index] = now
            requests.finish([job.state for job in lasts], now)
            for job in lasts:
                self._on_end(job.state.request, now)

    def _keep_lazily(
        self,
        core: LazyCore,
        ride: Ride,
        done: tuple[int, int],
        record: tuple[RequestRecorder, StepRecorder],
    ) -> None:
        """Do what the first iterations of a run did: so many steps launched, so many seen."""
        (launched, seen), (requests, steps) = done, record
        seqs, times, flights = core.batch.seqs, ride.times, self._flights
        if seen:
            seen_s = times.seen_s[:seen]
            first = flights[0].call if flights else Call(core.call, None, seqs, seqs)
            self._heard.step(first, float(seen_s[0]), requests)
            self._held_tokens += _tokens_of(first) + (seen - 1) * seqs
            if seen > 1:
                self._heard.run(seen_s, seqs, requests)
        if not launched:
            return
        used = self._vllm.usable_blocks - core.free_blocks
        blocks = BlockRun(used, core.batch.taken_by_call(), core.call)
        steps.record_run(
            (times.call_s[:launched], times.start_s[:launched], times.end_s[:launched]),
            (
                self.index, 0, seqs, len(core.running), len(core.waiting), blocks, 0,
                ride.decodes.bound(launched),
            ),
        )  # fmt: skip
        end_s = self._count_time(ride, launched)
        core.skip(launched, core.batch.blocks_of_run(core.call, launched))
        if flights:
            call = Call(core.call - 1, None, seqs, seqs)
            call.lasts = core.batch.lasts(call.number)
            flights[0] = Flight(call, end_s, empty=False)

    def settle(self, horizon_s: float, requests: RequestRecorder, steps: StepRecorder) -> float:
        """See `Replica.settle`."""
        end_s = super().settle(horizon_s, requests, steps)
        if self._lazy is not None:
            self._heard.note(self._lazy, requests)
        return end_s
