"""The prefill pass: which waiting requests make up a prefill batch."""

from twin.scheduling.sglang.core import SglangCore
from twin.scheduling.sglang.fixed_length import FixedLengthTest
from twin.scheduling.sglang.job import Job
from twin.scheduling.sglang.preemption import preempt_for
from twin.scheduling.sglang.prefill_budget import PrefillBudget, Verdict
from twin.scheduling.sglang.queue_order import order_queue, uncached_work
from twin.step import StepPlan


class PrefillPass:
    """One pass over the waiting queue, in order, until a request stops it.

    Nobody is passed over. (SGLang 0.5.23, `_get_new_batch_prefill_raw` and `PrefillAdder`.)

    Attributes:
        batch: admitted requests; the one that continues its prompt comes first.
        continued: the request whose prompt goes on from an earlier batch.
    """

    def __init__(self, core: SglangCore, plan: StepPlan) -> None:
        self.batch: list[Job] = []
        self.continued: Job | None = None
        core.made_way.clear()
        self._core = core
        self._plan = plan
        self._budget = PrefillBudget(core)
        self._fixed_length = FixedLengthTest(core, self._budget)

    def run(self) -> None:
        """Fill `batch`; the queue and `core.chunked` follow it."""
        core = self._core
        if core.chunked is not None:
            self._continue(core.chunked)
        for job in core.waiting:
            if self._budget.verdict is Verdict.STOP or not self._has_slot(job):
                break
            verdict = self._try(job)
            if verdict is Verdict.NO_MEMORY:
                core.full = bool(self.batch) or bool(core.running)
            if verdict is not Verdict.GO_ON:
                break
        if self.batch:
            taken = set(self.batch)
            core.waiting[:] = [job for job in core.waiting if job not in taken]
        for job in core.made_way:
            core.join_queue(job)

    def _continue(self, job: Job) -> None:
        """Take the next chunk of a prompt; it is never refused, since only it frees its KV."""
        core, budget = self._core, self._budget
        chunk = budget.chunk_left or 0
        tokens = min(chunk, int(budget.total_left))
        if tokens <= 0:
            tokens = chunk
        job.refresh()
        limit = self._chunk_limit(job)
        if limit is not None:
            tokens = min(tokens, limit)
        left = job.fill - job.prefix
        cut = left > tokens
        job.extend_end = job.prefix + min(left, tokens)
        self.batch.append(job)
        self.continued = job
        budget.take(job.extend_end - job.prefix, 0 if cut else self._clip(job.max_new))
        core.chunked = job if cut else None

    def _chunk_limit(self, job: Job) -> int | None:
        """Under `shortest-prefill-first` a chunk leaves room for shorter waiting prompts."""
        core, page = self._core, self._core.limits.page_size
        budget = self._budget.chunk_left or 0
        if core.limits.schedule_policy != "shortest-prefill-first" or budget < 2 * page:
            return None
        reserved = 0
        for waiting in core.waiting:
            work = uncached_work(waiting)
            charge = core.limits.ceil_page(work)
            if work >= job.fill - job.prefix or reserved + charge > budget - page:
                break
            reserved += charge
        return (budget - reserved) // page * page if reserved else None

    def _has_slot(self, job: Job) -> bool:
        """Whether there is room for one more, if need be in the place of a less urgent one.

        Once it was needed, every further request of the pass has to make its own room.
        """
        core = self._core
        held = sum(1 for admitted in self.batch if admitted.holds_row)
        if len(self.batch) >= free_slots(core, held):
            core.full = True
        if not core.full:
            return True
        if not core.limits.preempts:
            return False
        victims = preempt_for(core, self._budget, job, self._plan)
        core.made_way += victims
        return bool(victims)

    def _try(self, job: Job) -> Verdict:
        """Admit a request if it fits; return whether the pass goes on."""
        core, limits = self._core, self._core.limits
        job.refresh()
        job.prefix = job.protected = core.cache.match(job, job.fill - 1)
        job.matched = job.prefix
        most = limits.prefill_max_requests
        if most is not None and len(self.batch) >= most:
            return Verdict.STOP
        if job.ignore_eos and limits.disable_radix_cache:
            return self._try_fixed_length(job)
        core.cache.lock(job)
        verdict = self._fit(job)
        if verdict is not Verdict.GO_ON:
            if job.lock is not None:
                core.cache.tree.unlock(job.lock)
                job.lock = None
            return verdict
        return self._budget.verdict

    def _fit(self, job: Job) -> Verdict:
        """Admit a request whose prefix is held, whole or its first chunk."""
        limits, budget = self._core.limits, self._budget
        page, left = limits.page_size, job.fill - job.prefix
        output = self._clip(max(job.max_new - job.state.num_output, 0))
        if not left + output + page < budget.total_left:
            return Verdict.NO_MEMORY
        pages = limits.ceil_page(left)
        chunk = budget.chunk_left
        if chunk is None:
            if self.batch and pages >= budget.input_left:
                return Verdict.STOP
        elif pages > chunk:
            if self._core.chunked and limits.schedule_policy == "shortest-prefill-first":
                return Verdict.STOP
            end = (job.prefix + chunk // page * page) // page * page
            return self._admit_chunk(job, end - job.prefix)
        self._admit(job)
        return Verdict.GO_ON

    def _try_fixed_length(self, job: Job) -> Verdict:
        """Admit a request that is known to run to its limit, without a prefix cache."""
        if not self._fixed_length.fits(job, self.batch):
            return Verdict.NO_MEMORY
        chunk = self._budget.chunk_left
        if chunk is None or job.fill - job.prefix <= chunk:
            self._admit(job)
        else:
            verdict = self._admit_chunk(job, chunk)
            if verdict is not Verdict.GO_ON:
                return verdict
        return self._budget.verdict

    def _admit(self, job: Job) -> None:
        job.extend_end = job.fill
        self.batch.append(job)
        self._budget.take(job.extend_end - job.prefix, self._clip(job.max_new))

    def _admit_chunk(self, job: Job, tokens: int) -> Verdict:
        if tokens <= 0:
            return Verdict.STOP
        job.extend_end = job.prefix + tokens
        self.batch.append(job)
        self._core.chunked = job
        self._budget.take(tokens, 0)
        return Verdict.GO_ON

    def _clip(self, tokens: int) -> int:
        return min(tokens, self._core.limits.clip_max_new_tokens_estimation)


def free_slots(core: SglangCore, held_rows: int = 0) -> int:
    """Return how many requests a prefill batch may have, `held_rows` of them with a row."""
    slots = core.limits.max_running_requests - len(core.running)
    return min(slots, max(core.cache.rows_free + held_rows, 0))


def admit_prefill(core: SglangCore, plan: StepPlan) -> PrefillPass | None:
    """Try a prefill batch; None: there is none in this turn."""
    if core.limits.preempts or not core.running:
        core.full = False
    if core.chunked is None:
        if core.full or not core.waiting:
            return None
        if free_slots(core) <= 0 and not core.limits.preempts:
            core.full = True
            return None
    order_queue(core)
    trial = PrefillPass(core, plan)
    trial.run()
    return trial if trial.batch else None
