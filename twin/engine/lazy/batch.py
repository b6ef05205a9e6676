"""Who decodes, and which KV blocks that takes, as sums that one step changes by a few additions.

A decoding request computes one token in every schedule call, so its context is a number fixed when
it joined plus the number of the call. Its KV blocks grow in the calls that this number's remainder
by the block size names: a histogram of remainders says how many blocks each call takes.
"""

from collections import defaultdict

from twin.request import RequestState

_NEVER = 2**62


class Job:
    """A request as the lazy core sees it.

    Attributes:
        state: the request.
        order: place among all admissions.
        computed: prompt tokens computed, while it prefills.
        first_call: the first call that decodes it.
        decodes: calls that decode it: every token after the first, and, where the end is a stop
            token that no scheduler foresees, one more whose token nobody takes.
    """

    __slots__ = ("computed", "decodes", "first_call", "order", "state")

    def __init__(self, state: RequestState, order: int) -> None:
        self.state, self.order = state, order
        self.computed = self.first_call = self.decodes = 0

    @property
    def prompt_tokens(self) -> int:
        """Length of the prompt."""
        return self.state.request.prompt_tokens

    @property
    def last_call(self) -> int:
        """The call that samples its last token."""
        return self.first_call + self.state.output_limit - 2

    def tokens_before(self, call: int) -> int:
        """Return the tokens computed when `call` is decided."""
        if not self.first_call:
            return self.computed
        return self.prompt_tokens + min(max(call - self.first_call, 0), self.decodes)


class DecodeBatch:
    """The decoding requests.

    Attributes:
        seqs: how many.
        kv_tokens: KV tokens they hold in sum, as of the last call.
    """

    def __init__(self, block_size: int) -> None:
        self.seqs = self.kv_tokens = 0
        self._size = block_size
        self._phases = [0] * block_size
        self._leaving: dict[int, list[Job]] = defaultdict(list)
        self._lasts: dict[int, list[Job]] = defaultdict(list)
        self._joining: list[Job] = []

    def join(self, job: Job) -> None:
        """Decode a request from `job.first_call`, the next call, on."""
        if job.decodes:
            self._joining.append(job)
            self._leaving[job.first_call + job.decodes].append(job)
        if job.state.output_limit > 1:
            self._lasts[job.last_call].append(job)

    def turn(self, call: int) -> None:
        """Let go and take in who changes with this call, before it computes anything."""
        for job in self._leaving.pop(call, ()):
            self.seqs -= 1
            self.kv_tokens -= job.prompt_tokens + job.decodes
            self._phases[self._phase(job)] -= 1
        for job in self._joining:
            self.seqs += 1
            self.kv_tokens += job.prompt_tokens
            self._phases[self._phase(job)] += 1
        self._joining.clear()

    def blocks_taken(self, call: int) -> int:
        """Return the blocks that this call's decodes take, after `turn`."""
        return self._phases[-call % self._size]

    def decode(self) -> None:
        """Compute one token of each."""
        self.kv_tokens += self.seqs

    def lasts(self, call: int) -> list[Job]:
        """Return who samples its last token in this call."""
        return self._lasts.pop(call, [])

    def taken_by_call(self) -> tuple[int, ...]:
        """Return the blocks a call takes, by its number modulo the block size, nobody changing."""
        return (self._phases[0], *self._phases[:0:-1])

    def blocks_of_run(self, call: int, calls: int) -> int:
        """Return the blocks that some calls take, `call` the first, nobody changing."""
        rounds, rest = divmod(calls, self._size)
        taken, size = rounds * self.seqs, self._size
        for number in range(call, call + rest):
            taken += self._phases[-number % size]
        return taken

    def next_change(self, *, with_lasts: bool) -> int:
        """Return the first call whose decodes are not those of the last one; -1: the next.

        `with_lasts`: one in which somebody samples its last token doesn't count, the one after
        it does; otherwise it does itself.
        """
        if self._joining:
            return -1
        first = min(self._leaving) if self._leaving else _NEVER
        if self._lasts:
            first = min(first, min(self._lasts) + with_lasts)
        return first

    def skip(self, calls: int) -> None:
        """Advance by calls in which nobody changes."""
        self.kv_tokens += calls * self.seqs

    def _phase(self, job: Job) -> int:
        """A block is taken when a multiple of the block size was computed before the call."""
        return (job.prompt_tokens - job.first_call) % self._size
