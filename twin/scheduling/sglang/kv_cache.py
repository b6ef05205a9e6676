"""The KV memory: a pool of tokens, and the tree that keeps prefixes in it."""

from twin.errors import InputError
from twin.scheduling.sglang.job import Job
from twin.scheduling.sglang.limits import SglangLimits
from twin.scheduling.sglang.radix_tree import RadixTree


class KvCache:
    """Counts KV tokens: free, in the tree, or a job's own.

    Which page a token lies in decides nothing, so pages are only counted. A job's own tokens are
    those of its `state.num_computed` beyond `protected`, in whole pages.

    Attributes:
        tree: cached prefixes; always empty without the radix cache.
        free: tokens in pages that nobody holds.
        rows_free: rows left in the table of running requests.
    """

    __slots__ = ("_caching", "_ceil_page", "_page", "free", "rows_free", "tree")

    def __init__(self, limits: SglangLimits) -> None:
        tlru = (limits.tlru_threshold, limits.tlru_next_prompt_estimate)
        self.tree = RadixTree(limits.key_tokens, limits.radix_eviction_policy, tlru)
        self.free = limits.pool_tokens
        self.rows_free = limits.request_rows or limits.max_running_requests
        self._caching = not limits.disable_radix_cache
        self._page = limits.page_size
        self._ceil_page = limits.ceil_page

    @property
    def available(self) -> int:
        """Tokens that are free or can be made so."""
        return self.free + self.tree.evictable

    def make_room(self, tokens: int) -> bool:
        """Evict until `tokens` are free; return whether they are."""
        if self.free < tokens and self._caching:
            self.free += self.tree.evict(tokens - self.free)
        return self.free >= tokens

    def room_for_decode(self, jobs: list[Job]) -> bool:
        """Evict what one more token for each needs; return whether it is free then."""
        return self.make_room(self._next_pages(jobs) * self._page)

    def decode(self, jobs: list[Job]) -> None:
        """Give each one more token; the caller has seen that it fits.

        SGLang makes room for a page each, which may be more than is taken.
        """
        self.make_room(len(jobs) * self._page)
        self.free -= self._next_pages(jobs) * self._page
        for job in jobs:
            job.state.num_computed += 1

    def _next_pages(self, jobs: list[Job]) -> int:
        """Return how many new pages one more token for each takes."""
        page = self._page
        if page == 1:
            return len(jobs)
        return sum(1 for job in jobs if not job.state.num_computed % page)

    def match(self, job: Job, tokens: int) -> int:
        """Find the longest cached prefix of a job's first `tokens` tokens; return its length."""
        if not self._caching:
            return 0
        size = self.tree.key_tokens
        job.node, keys = self.tree.match(job.keys, tokens // size)
        return keys * size

    def lock(self, job: Job) -> None:
        """Hold the end of a job's last match for it."""
        job.lock = job.node
        if job.lock is not None:
            self.tree.lock(job.lock)

    def extend(self, batch: list[Job]) -> None:
        """Give the jobs of a prefill batch KV from `prefix` to `extend_end`, and rows.

        Raises:
            InputError: the pool is too small; SGLang's scheduler dies here too. (Admission counts
                neither the later chunks of a long prompt nor what mixed decodes take meanwhile.)
        """
        page, ceil_page = self._page, self._ceil_page
        tokens = sum(job.extend_end - job.prefix for job in batch)
        self.make_room(tokens if page == 1 else tokens + len(batch) * page)
        taken = sum(ceil_page(job.extend_end) - ceil_page(job.prefix) for job in batch)
        if taken > self.free:
            raise InputError(
                f"a prefill needs {taken} KV tokens and only {self.free} can be had; SGLang's "
                "scheduler dies of this",
                remedy="raise max_total_num_tokens or schedule_conservativeness",
            )
        self.free -= taken
        for job in batch:
            job.state.num_computed = job.extend_end
            if not job.holds_row:
                job.holds_row = True
                self.rows_free -= 1

    def checkpoint(self, job: Job, up_to: int) -> None:
        """Insert a job's tokens before `up_to` into the tree and hold them there.

        What the tree had already is freed. An answer becomes a leaf of its own, so that it can
        be evicted without its prompt.
        """
        if not self._caching:
            return
        tree, size = self.tree, self.tree.key_tokens
        count = min(job.fill, up_to) // size
        node, before = tree.insert(
            job.keys, count, counted=job.counted // size, priority=job.priority
        )
        self.free += max(0, before * size - job.protected)
        job.counted = max(job.counted, count * size)
        prompt = job.prompt // size
        if 0 < prompt < count:
            tree.insert(job.keys, prompt, counted=prompt, priority=job.priority + 1)
        if job.lock is not None:
            tree.unlock(job.lock)
        tree.lock(node)
        job.lock = job.node = node
        job.protected = count * size

    def release(self, job: Job, *, keep: bool) -> None:
        """Take a job's KV and row; `keep`: what the tree can hold stays cached."""
        held = job.state.num_computed
        if keep:
            job.refresh()
            self.checkpoint(job, min(held, job.fill))
        self.free += self._ceil_page(held) - job.protected
        if job.lock is not None:
            self.tree.unlock(job.lock)
            job.lock = None
        job.holds_row = False
        self.rows_free += 1
