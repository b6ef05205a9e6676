"""The fast engine: an engine core that walks through runs of equal decode steps at once.

While a batch only decodes, everything about it is known ahead: such a run is one event instead of
one a step. A run that something reaches (a request, the end of the simulation) is cut at the first
schedule call that would have seen it. Results are those of `twin.engine.replica` bit for bit.
"""

from bisect import bisect_left
from collections.abc import Callable, Generator, Sequence

import numpy as np

from hwmodels.host import HostCosts
from twin.engine.clock import Clock, Event
from twin.engine.gpu import DecodeTimer, OneStage
from twin.engine.in_flight import InFlight
from twin.engine.quiet_run import HostTimes, RunTimes, one_ahead, one_by_one
from twin.engine.recorder import RequestRecorder
from twin.engine.replica import Replica
from twin.engine.step_recorder import StepRecorder
from twin.llm.decode_run import DecodeTimes
from twin.request import Request, RequestState
from twin.scheduling.base import QuietScheduler
from twin.step import BatchShape, StepPlan

FEWEST_STEPS = 4
"""A shorter run costs more as a whole than step by step."""

_MOST_STEPS = 4096
"""Runs are cut so that what is known ahead stays small."""


Keep = Callable[["Ride", int, int], None]


class Ride:
    """A run under way: what is known of it, how much of it will be done, and who writes it down.

    `stopped`: what was done of it is written down, and its last iteration is not over.
    """

    __slots__ = ("decodes", "keep", "kept", "stopped", "times")

    def __init__(self, times: RunTimes, decodes: DecodeTimes, keep: Keep) -> None:
        self.times, self.decodes, self.kept, self.keep = times, decodes, len(times), keep
        self.stopped = False


class FastReplica(Replica):
    """As `Replica`, for one stage of GPUs.

    Args:
        clock, index, scheduler, gpus, host: see `Replica`.
        timer: what times the batches of `gpus`.
    """

    def __init__(
        self,
        clock: Clock,
        index: int,
        scheduler: QuietScheduler,
        timer: DecodeTimer,
        host: HostCosts,
    ) -> None:
        self._stage = OneStage(timer)
        super().__init__(clock, index, scheduler, self._stage, host)
        self._quiet: QuietScheduler = scheduler
        self._decode_timer = timer
        self._ride: Ride | None = None
        self._resume: Event | None = None
        self._alarm: Event | None = None

    def submit(self, state: RequestState) -> int:
        """See `Replica.submit`; a run under way ends before the call that sees the request."""
        if self._ride is not None:
            self._cut(self._ride, self._clock.now)
        return super().submit(state)

    def catch_up(self, request: Request) -> None:  # noqa: ARG002
        """See `Replica.catch_up`."""
        self._stop()

    def abort(self, state: RequestState) -> bool:
        """See `Replica.abort`."""
        self._stop()
        return super().abort(state)

    def crash(self) -> list[RequestState]:
        """See `Replica.crash`."""
        self._stop()
        self._resume = None
        self._set_alarm(None)
        return super().crash()

    def _stop(self) -> None:
        """Bring everything to this instant, so that whatever goes on does so step by step."""
        ride = self._ride
        if ride is None or self._served is None:
            return
        before = self._begun(ride) - 1
        ride.keep(ride, before, before)
        requests, steps, _ = self._served
        _, launched_s = self._launch(float(ride.times.call_s[before]), requests, steps)
        self._end_ride(ride, self._in_flight[0].out_s(self._host, launched_s))

    def _begun(self, ride: Ride) -> int:
        """Return how many iterations of a run under way began before now, the first at least.

        Of the last of them the tokens have not left the engine.
        """
        return min(ride.kept, max(1, bisect_left(ride.times.call_s, self._clock.now)))

    def _end_ride(self, ride: Ride, out_s: float) -> None:
        """A run under way is over with the iteration whose tokens leave the engine then."""
        ride.stopped = True
        self._ride = None
        self._wake_at(out_s)

    @property
    def load_tokens(self) -> int:
        """See `Replica.load_tokens`."""
        ride = self._ride
        return self._held_tokens + (0 if ride is None else self._ridden_tokens(ride))

    @property
    def used_blocks(self) -> int:
        """See `Replica.used_blocks`."""
        ride = self._ride
        taken = 0 if ride is None else self._quiet.blocks_taken(self._calls_made(ride))
        return super().used_blocks + taken

    def _cached_keys(self, keys: Sequence[int]) -> int:
        calls = 0 if self._ride is None else self._calls_made(self._ride)
        return self._quiet.cached_prefix_keys(keys, calls)

    def _ridden_tokens(self, ride: Ride) -> int:
        """Return the tokens of a run under way that have left the engine before now."""
        return self._seen(ride) * len(self._quiet.running)

    def _calls_made(self, ride: Ride) -> int:
        """Return how many schedule calls of a run under way came before now."""
        return min(int(ride.times.call_s.searchsorted(self._clock.now)), ride.kept)

    def _seen(self, ride: Ride) -> int:
        """Return of how many iterations of a run under way the tokens came before now."""
        return min(int(ride.times.seen_s.searchsorted(self._clock.now)), ride.kept)

    def _hurry(
        self, requests: RequestRecorder, steps: StepRecorder
    ) -> Generator[Event, None, None] | None:
        """Return the walk through a run of decode steps, if one begins now."""
        self._drain()
        in_flight, scheduler = self._in_flight, self._quiet
        if self.delivery is not None or len(in_flight) != scheduler.queue_depth - 1:
            return None
        if in_flight and (in_flight[0].empty or not only_decodes(in_flight[0].plan)):
            return None
        calls = scheduler.quiet_calls()
        if calls < FEWEST_STEPS:
            return None
        states = scheduler.running
        if in_flight and in_flight[0].plan.samples != states:
            return None

        def keep(ride: Ride, launched: int, seen: int) -> None:
            self._keep(ride, launched, seen, (requests, steps))

        flying = (in_flight[0].end_s, len(states)) if in_flight else None
        return self._walk(self._ride_ahead(next_decode(states), calls, flying, keep))

    def _ride_ahead(
        self, first: BatchShape, calls: int, flying: tuple[float, int] | None, keep: Keep
    ) -> Ride:
        """Return the run of so many schedule calls from now on.

        Args:
            first: the shape of its first step.
            calls: see above.
            flying: (end, sequences) of the step in flight; None: there is none.
            keep: writes down what was done of it.
        """
        decodes = self._decode_timer.decode_run(first, min(calls, _MOST_STEPS))
        host, now, seqs = self._host, self._clock.now, first.decode_seqs
        times = HostTimes(host.launch_s(seqs), host.wake_s, host.process_s(seqs))
        if flying is not None:
            end_s, before = flying
            ahead = one_ahead(now, (end_s, host.process_s(before)), decodes.seconds, times)
            return Ride(ahead, decodes, keep)
        return Ride(one_by_one(now, decodes.seconds, times), decodes, keep)

    def _walk(self, ride: Ride) -> Generator[Event, None, None]:
        end_s = float(ride.times.seen_s[-1])
        if not self._clock.jump(end_s):
            self._ride, self._resume = ride, self._clock.event()
            self._wake_at(end_s)
            yield self._resume
            if ride.stopped:
                self._process_next()
                return
            self._ride = None
        ride.keep(ride, ride.kept, ride.kept)

    def _process_next(self) -> None:
        """Process the oldest step in flight."""
        if self._served is not None:
            requests, _, on_end = self._served
            self._process(self._in_flight.popleft().plan, requests, on_end)

    def _wake_at(self, time_s: float) -> None:
        """Resume the walk then, and not when it was to be resumed before."""

        def ring(_: Event) -> None:
            self._alarm = None
            if self._resume is not None:
                resume, self._resume = self._resume, None
                resume.succeed()

        alarm = self._clock.at(time_s)
        if alarm.callbacks is not None:  # a fresh event always has them
            alarm.callbacks.append(ring)
        self._set_alarm(alarm)

    def _set_alarm(self, alarm: Event | None) -> None:
        if self._alarm is not None:
            self._clock.withdraw((self._alarm,))
        self._alarm = alarm

    def _cut(self, ride: Ride, at_s: float) -> None:
        """Keep the iterations that begin before `at_s`, the first at least."""
        kept = max(1, bisect_left(ride.times.call_s, at_s))
        if kept < ride.kept:
            ride.kept = kept
            self._wake_at(float(ride.times.seen_s[kept - 1]))

    def settle(
        self,
        horizon_s: float,
        requests: RequestRecorder,  # noqa: ARG002
        steps: StepRecorder,  # noqa: ARG002
    ) -> float:
        """Write down what a run under way did before the simulation ended."""
        ride = self._ride
        if ride is not None:
            launched = bisect_left(ride.times.call_s, horizon_s)
            seen = bisect_left(ride.times.seen_s, horizon_s)
            ride.keep(ride, min(launched, ride.kept), min(seen, ride.kept))
            self._ride = None
        return self._clock.now

    def _keep(
        self, ride: Ride, launched: int, seen: int, record: tuple[RequestRecorder, StepRecorder]
    ) -> None:
        """Do what the first iterations of a run did: so many steps launched, so many seen."""
        requests, steps = record
        states, times = self._quiet.running, ride.times
        if seen:
            requests.deliver_run(states, times.seen_s[:seen])
            self._held_tokens += seen * len(states)
        if not launched:
            return
        free, running = self._quiet.free_blocks, self._quiet.num_running
        taken = np.add.accumulate(np.array(self._quiet.skip_calls(launched), dtype=np.int64))
        used = self._quiet.usable_blocks - free + taken
        steps.record_run(
            (times.call_s[:launched], times.start_s[:launched], times.end_s[:launched]),
            (
                self.index, 0, len(states), running, self._quiet.num_waiting, used, 0,
                ride.decodes.bound(launched),
            ),
        )  # fmt: skip
        end_s = self._count_time(ride, launched)
        if self._in_flight:
            plan = self._in_flight.popleft().plan
            plan.index += launched
            self._in_flight.append(InFlight(plan, end_s, empty=False))

    def _count_time(self, ride: Ride, launched: int) -> float:
        """Count the GPU time of the first steps of a run; return when the last of them ends."""
        self._count_sources(ride.decodes.by_source(launched))
        end_s = float(ride.times.end_s[launched - 1])
        self._stage.busy_until(end_s)
        self.skipped_steps += launched
        return end_s


def only_decodes(plan: StepPlan) -> bool:
    """Whether every token of a step is a sequence's only one, and samples the next."""
    return plan.total_tokens == len(plan.samples) == len(plan.scheduled)


def next_decode(states: list[RequestState]) -> BatchShape:
    """Return the shape of a step in which all of these compute one more token."""
    seqs, held = len(states), [state.num_computed for state in states]
    return BatchShape((), seqs, sum(held) + seqs, max(held) + 1, seqs, min(held) + 1)
