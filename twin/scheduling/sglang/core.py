"""`SglangCore`: the mutable state that the parts of one SGLang scheduler share."""

import random
from collections import deque
from dataclasses import dataclass, field

from twin.request import RequestState, Status
from twin.scheduling.base import PrefixCounters
from twin.scheduling.sglang.job import Job
from twin.scheduling.sglang.kv_cache import KvCache
from twin.scheduling.sglang.limits import SglangLimits
from twin.scheduling.sglang.ratio import NewTokenRatio
from twin.step import StepPlan

_SHUFFLE_SEED = 0


@dataclass(slots=True)
class Launch:
    """A batch on its way: decided, and its result not processed yet.

    Attributes:
        prefill: (job, tokens in KV before, tokens it computes), in order.
        decode: jobs that compute one token, in order, after the prefills.
        jobs: all of them, in order.
        chunked: the one of `prefill` whose prompt goes on after it; its result brings no token.
        continued: the one of `prefill` that had begun before.
    """

    prefill: list[tuple[Job, int, int]] = field(default_factory=list)
    decode: list[Job] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    chunked: Job | None = None
    continued: Job | None = None


class SglangCore:
    """Who runs, who waits, and what is on its way.

    Attributes:
        limits: the policy.
        cache: the KV memory.
        ratio: share of foreseen output that is reserved.
        waiting: the queue; joined at its end, taken from anywhere.
        running: the decode batch, in order.
        full: no further prefill is tried until somebody leaves `running`.
        chunked: the request whose prompt is being computed piece by piece.
        last: requests of the batch launched in the last turn if it was a prefill, else empty.
        launches: batches whose results are not processed, oldest first.
        prefix: prefix-cache counters.
        unfinished: requests taken in and not ended.
        settled: an idle turn has passed since the last work.
        someone_left: a request in `running` may have finished.
        ordering_passes: passes over the queue that may refresh its prefixes.
        work_tokens: what `hrrn` takes for the prefill tokens launched so far.
        last_tokens: tokens of the last prefill batch, its mixed decodes included.
        carried_tokens: `last_tokens` of the batch that the running one grew from.
        made_way: running requests preempted in this turn for more urgent ones.
        aborted: requests that ended without a result to tell of it.
        shuffle: stream of the `random` order.
    """

    __slots__ = (
        "_joined",
        "aborted",
        "cache",
        "carried_tokens",
        "chunked",
        "full",
        "last",
        "last_tokens",
        "launches",
        "limits",
        "made_way",
        "ordering_passes",
        "prefix",
        "ratio",
        "running",
        "settled",
        "shuffle",
        "someone_left",
        "unfinished",
        "waiting",
        "work_tokens",
    )

    def __init__(self, limits: SglangLimits) -> None:
        self.limits = limits
        self.cache = KvCache(limits)
        self.ratio = NewTokenRatio(limits)
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.full = False
        self.chunked: Job | None = None
        self.last: list[Job] = []
        self.launches: deque[Launch] = deque()
        self.prefix = PrefixCounters()
        self.unfinished = 0
        self.settled = True
        self.someone_left = False
        self.ordering_passes = 0
        self.work_tokens = 0
        self.last_tokens = 0
        self.carried_tokens = 0
        self.made_way: list[Job] = []
        self.aborted: list[RequestState] = []
        self.shuffle = random.Random(_SHUFFLE_SEED)  # noqa: S311 (an order, not a secret)
        self._joined = 0

    def add(self, state: RequestState) -> None:
        """Take a new request into the queue."""
        self.unfinished += 1
        self.join_queue(Job(state, self.limits))

    def join_queue(self, job: Job) -> None:
        """Put a request at the end of the queue."""
        job.queued = self._joined
        self._joined += 1
        job.arrival_work = self.work_tokens
        self.waiting.append(job)

    def retract(self, job: Job, remaining: int, plan: StepPlan) -> None:
        """Take a running request's KV, keeping its outputs; the caller queues it again.

        What it held of the tree stays there, and is evicted as far as the `remaining` requests
        need room for some steps. A result on its way for it is dropped.
        """
        self._take_kv(job, remaining)
        job.state.preemptions += 1
        job.state.status = Status.PREEMPTED
        plan.preempted.append(job.state)

    def abort(self, job: Job) -> None:
        """End a request that does not fit into memory even when it is alone.

        Intake clips outputs so that this does not happen to a request that was let in.
        """
        self._take_kv(job, 0)
        job.finished = True
        state = job.state
        if not state.finish_reason:  # nobody has to hear of one given up before
            self.aborted.append(state)
        state.finish_reason = "abort"
        state.status = Status.FINISHED
        self.unfinished -= 1

    def give_up(self, state: RequestState) -> None:
        """A client gave a request up: who waits leaves at once, who runs with its next result.

        A running one is only marked; its KV is dealt with as that of any that finishes. (SGLang
        0.5.23, `Scheduler.abort_request`.)
        """
        state.finish_reason = "abort"
        for place, job in enumerate(self.waiting):
            if job.state is state:
                del self.waiting[place]
                job.finished = True
                state.status = Status.FINISHED
                self.unfinished -= 1
                return
        state.output_limit = state.num_output + 1

    def held(self) -> list[RequestState]:
        """Return the requests not ended and not given up: running ones in order, then waiting."""
        flying = [job for launch in self.launches for job in launch.jobs]
        chunked = [] if self.chunked is None else [self.chunked]
        jobs = [*self.running, *self.last, *chunked, *flying, *self.waiting]
        return [job.state for job in dict.fromkeys(jobs) if not job.state.finish_reason]

    def _take_kv(self, job: Job, remaining: int) -> None:
        self.cache.release(job, keep=False)
        self.cache.make_room(remaining * self.limits.retract_decode_steps)
        job.retracted = True
        job.prefix = job.protected = job.counted = job.extend_end = 0
        job.matched = job.middle_chunks = 0
        job.node = None
        job.state.num_computed = 0

    def foreseen_finishers(self) -> set[Job]:
        """Return the running requests that the result on its way ends by length."""
        if not self.launches:
            return set()
        near = {job for job in self.running if job.state.num_output + 1 >= job.max_new}
        return near.intersection(self.launches[0].jobs) if near else near
