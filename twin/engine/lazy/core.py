"""The decisions of vLLM's scheduler, first come first served, by sums.

Covered: requests without content (nothing to hit in the prefix cache), chunked prefill or not,
asynchronous or not, as long as no call runs short of KV blocks. `fits_call` says before each call
whether that is so; if not, somebody else has to go on (`twin.engine.lazy.handover`).
"""

from collections import deque
from dataclasses import dataclass, field

from twin.engine.lazy.batch import DecodeBatch, Job
from twin.request import RequestState, Status
from twin.scheduling.base import PrefixCounters
from twin.scheduling.limits import SchedulerLimits
from twin.step import BatchShape


@dataclass(slots=True)
class Call:
    """One decision.

    Attributes:
        number: of the call.
        shape: of the forward pass; None: no tokens.
        seqs: sequences scheduled.
        decodes: sequences that decode, their tokens taken or not.
        extra: decodes whose token nobody takes.
        chunks: what is computed of whose prompt.
        firsts: who samples its first token.
        lasts: who samples its last token.
        admitted: who joins.
    """

    number: int
    shape: BatchShape | None
    seqs: int
    decodes: int
    extra: tuple[Job, ...] = ()
    chunks: list[tuple[Job, int]] = field(default_factory=list)
    firsts: list[Job] = field(default_factory=list)
    lasts: list[Job] = field(default_factory=list)
    admitted: list[Job] = field(default_factory=list)


class LazyCore:
    """Who runs and who waits.

    Args:
        limits: the policy.
        free_blocks: KV blocks nobody holds.
        prefix: counters that admissions count in.
        first_call: number of the first call.
    """

    def __init__(
        self, limits: SchedulerLimits, free_blocks: int, prefix: PrefixCounters, first_call: int
    ) -> None:
        self.limits, self.free_blocks, self.prefix = limits, free_blocks, prefix
        self.call = first_call
        self.batch = DecodeBatch(limits.block_size)
        self.waiting: deque[RequestState] = deque()
        self.running: dict[int, Job] = {}
        self.partial: Job | None = None
        self.unsent = False
        self._extra_in: dict[int, tuple[Job, ...]] = {}
        self._admissions = 0

    def has_unfinished(self) -> bool:
        """See `Scheduler.has_unfinished`."""
        return bool(self.running or self.waiting)

    def has_requests(self) -> bool:
        """See `Scheduler.has_requests`."""
        return self.unsent or bool(self.running or self.waiting)

    def fits_call(self) -> bool:
        """Whether the next call finds the KV blocks that running requests take in it."""
        batch, call, size = self.batch, self.call, self.limits.block_size
        batch.turn(call)
        needed = batch.blocks_taken(call)
        job = self.partial
        if job is not None:
            left = self.limits.max_num_batched_tokens - batch.seqs
            end = min(job.prompt_tokens, job.computed + left)
            needed += max(0, -(-end // size) - -(-job.computed // size))
        return needed <= self.free_blocks

    def decide(self) -> Call:
        """Decide the next call; `fits_call` has just said that it can be."""
        call, batch = self.call, self.batch
        self.call += 1
        self.unsent = False
        self.free_blocks -= batch.blocks_taken(call)
        batch.decode()
        decodes, decode_kv = batch.seqs, batch.kv_tokens
        found = Call(call, None, decodes, decodes, self._extra_in.pop(call, ()))
        found.lasts = batch.lasts(call)
        self._prefill(found, self.limits.max_num_batched_tokens - decodes)
        found.seqs = decodes + len(found.chunks)
        if not found.seqs:
            return found
        seqs = decodes
        prefill = []
        for job, tokens in found.chunks:
            if tokens == 1:  # computed like a decode
                seqs, decode_kv = seqs + 1, decode_kv + job.computed
            else:
                prefill.append((tokens, job.computed))
        sampled = decodes + len(found.firsts)
        found.shape = BatchShape(tuple(prefill), seqs, decode_kv, 0, sampled)
        return found

    def quiet_calls(self) -> int:
        """Return how many calls from now on decode the same requests, none short of blocks.

        Asynchronously the last of them may sample somebody's last token; it is processed later.
        0 as well if somebody waits who might be admitted.
        """
        batch = self.batch
        if self.partial is not None or not batch.seqs or self.unsent:
            return 0
        if self.waiting and not self._head_stays_blocked():
            return 0
        calls = batch.next_change(with_lasts=self.limits.async_scheduling) - self.call
        size = self.limits.block_size
        if calls > 0 and batch.seqs * (calls // size + 1) > self.free_blocks:
            calls = min(calls, max(0, self.free_blocks // batch.seqs * size - size))
        return calls

    def skip(self, calls: int, blocks: int) -> None:
        """Advance by that many quiet calls, which take so many blocks."""
        self.call += calls
        self.batch.skip(calls)
        self.free_blocks -= blocks

    def finish(self, jobs: list[Job]) -> None:
        """The last tokens of these requests have been processed."""
        size = self.limits.block_size
        for job in jobs:
            state = job.state
            del self.running[job.order]
            held = job.prompt_tokens + job.decodes
            self.free_blocks += -(-held // size)
            stop = state.request.stop_after_tokens
            state.num_output = state.output_limit
            state.finish_reason = "stop" if state.num_output == stop else "length"
            state.status = Status.FINISHED
        self.unsent = self.unsent or bool(jobs)

    def _prefill(self, found: Call, budget: int) -> None:
        """Give the budget to prompts."""
        if self.partial is not None and budget > 0:
            budget -= self._chunk(self.partial, budget, found)
        while budget > 0 and self.partial is None and self.waiting:
            job = self._admit(budget, found)
            if job is None:
                break
            budget -= self._chunk(job, budget, found)

    def _chunk(self, job: Job, budget: int, found: Call) -> int:
        """Compute a prompt's next tokens; return how many."""
        size, start = self.limits.block_size, job.computed
        tokens = min(job.prompt_tokens - start, budget)
        end = job.computed = start + tokens
        self.free_blocks -= -(-end // size) - -(-start // size)
        found.chunks.append((job, tokens))
        self.partial = None if end == job.prompt_tokens else job
        if self.partial is None:
            self._sample_first(job, found)
        return tokens

    def _sample_first(self, job: Job, found: Call) -> None:
        limits, state, call = self.limits, job.state, found.number
        found.firsts.append(job)
        last = state.output_limit
        unforeseen = last < state.request.max_tokens
        room = job.prompt_tokens + last < limits.max_model_len
        extra = int(limits.async_scheduling and unforeseen and room)
        job.first_call, job.decodes = call + 1, last - 1 + extra
        if last == 1:
            found.lasts.append(job)
        if extra:
            number = call + last
            self._extra_in[number] = (*self._extra_in.get(number, ()), job)
        self.batch.join(job)

    def _admit(self, budget: int, found: Call) -> Job | None:
        """Admit the head of the queue if it fits."""
        if self._blocks_head(budget):
            return None
        state = self.waiting.popleft()
        job = Job(state, self._admissions)
        self._admissions += 1
        self.running[job.order] = job
        state.cached_tokens = 0
        found.admitted.append(job)
        if self.limits.enable_prefix_caching:
            self.prefix.requests += 1
            self.prefix.queries += job.prompt_tokens
        return job

    def _blocks_head(self, budget: int) -> bool:
        """Whether the head of the queue has to wait, with that much of the budget left."""
        limits = self.limits
        if len(self.running) >= limits.max_num_seqs:
            return True
        prompt, size = self.waiting[0].request.prompt_tokens, limits.block_size
        if prompt > budget and not limits.enable_chunked_prefill:
            return True
        available = self.free_blocks - (limits.watermark_blocks if self.running else 0)
        if limits.scheduler_reserve_full_isl and -(-prompt // size) > available:
            return True
        return -(-min(prompt, budget) // size) > available

    def _head_stays_blocked(self) -> bool:
        budget = self.limits.max_num_batched_tokens - self.batch.seqs
        return budget > 0 and self._blocks_head(budget)
