"""Which data-parallel rank of a vLLM server a request goes to.

One front end sends every request to the rank with the lowest score. What it knows of the ranks
is what a coordinator published last, plus its own choices since: engine cores tell the
coordinator (waiting, running) when they change, and it publishes at most every 100 ms, the
counts of the last step that all ranks have finished. A publication that changes nothing every
5 s still erases the front end's own additions.

Sources: vLLM 0.19.0 and 0.33.0, `v1/engine/core_client.py` (`DPLBAsyncMPClient`) and
`v1/engine/coordinator.py`.
"""

import math
from typing import Protocol

PUBLISH_EVERY_S = 0.1
PUBLISH_UNCHANGED_EVERY_S = 5.0
SETTLE_S = 0.05
"""Without a finished step's counts the coordinator waits this long for stragglers."""

Counts = tuple[int, int]
"""(waiting, running) of one rank."""


class RankScore(Protocol):
    """Tells how loaded a rank looks; the lowest score gets the request."""

    def __call__(self, waiting: int, running: int, usage: float, in_flight: int) -> float:
        """Return the score of published counts, KV usage and this front end's own requests."""
        ...


def waiting_weighs_four(waiting: int, running: int, usage: float, in_flight: int) -> float:
    """vLLM 0.19.0: a waiting request counts as four running ones."""
    del usage, in_flight
    return 4.0 * waiting + running


def in_flight_floor(waiting: int, running: int, usage: float, in_flight: int) -> float:
    """vLLM 0.33.0: at least the own requests in flight; waiting weighs with KV usage above half."""
    return max(in_flight, waiting + running) + waiting * 6.0 * max(0.0, usage - 0.5)


class Coordinator:
    """Publishes the ranks' counts at vLLM's pace, worked out when somebody asks.

    Args:
        ranks: number of ranks.
        settles: waits for stragglers of a step (ranks in lockstep).
    """

    def __init__(self, ranks: int, *, settles: bool) -> None:
        self._settle_s = SETTLE_S if settles else 0.0
        self.publications = 0
        self._start(ranks, 0.0)

    def reset(self, now_s: float) -> None:
        """Start anew, knowing nothing of the ranks."""
        self.publications += 1
        self._start(len(self._counts), now_s)

    def _start(self, ranks: int, now_s: float) -> None:
        self._counts: list[Counts] = [(0, 0)] * ranks
        self._usage = [0.0] * ranks
        self._finished_step: list[Counts] | None = None
        self._step = -1
        self._changed = False
        self._last_publication_s = -math.inf
        self._due_s = now_s
        self.published: list[Counts] = list(self._counts)
        self.usage: list[float] = list(self._usage)

    def report(self, rank: int, step: int, counts: Counts, usage: float, now_s: float) -> None:
        """A rank tells its counts after one of its steps."""
        self.advance(now_s)
        if counts == self._counts[rank]:
            return
        if step > self._step:
            if self._changed:
                self._finished_step = list(self._counts)
            self._step = step
        self._counts[rank], self._usage[rank] = counts, usage
        self._changed = True
        self._schedule(now_s)

    def advance(self, now_s: float) -> None:
        """Publish all that is due by `now_s`."""
        while self._due_s <= now_s:
            at_s = self._due_s
            if self._finished_step is not None:
                self.published, self._finished_step = self._finished_step, None
            else:
                self.published, self._changed = list(self._counts), False
            self.usage = list(self._usage)
            self.publications += 1
            self._last_publication_s = at_s
            self._schedule(at_s)

    def _schedule(self, now_s: float) -> None:
        period_s = PUBLISH_EVERY_S if self._changed else PUBLISH_UNCHANGED_EVERY_S
        least_s = 0.0 if self._finished_step is not None else self._settle_s
        self._due_s = max(now_s + least_s, self._last_publication_s + period_s)


class RankBalancer:
    """One front end's choice of a rank.

    Args:
        coordinator: what the front end hears from.
        score: the rule of the engine's version.
        rotates: the scan starts one rank further after each choice, which breaks ties in turn.
    """

    def __init__(self, coordinator: Coordinator, score: RankScore, *, rotates: bool) -> None:
        self._coordinator = coordinator
        self._score = score
        self._rotates = rotates
        self._start = 0
        self._seen = -1
        self._waiting: list[int] = []
        self._in_flight = [0] * len(coordinator.published)

    def choose(self, now_s: float) -> int:
        """Return the rank for a request that arrives now."""
        coordinator = self._coordinator
        coordinator.advance(now_s)
        if coordinator.publications != self._seen:
            self._seen = coordinator.publications
            self._waiting = [waiting for waiting, _ in coordinator.published]
        ranks = len(self._waiting)
        scores = [
            self._score(
                self._waiting[rank],
                coordinator.published[rank][1],
                coordinator.usage[rank],
                self._in_flight[rank],
            )
            for rank in range(ranks)
        ]
        order = [(self._start + step) % ranks for step in range(ranks)]
        chosen = min(order, key=scores.__getitem__)
        self._waiting[chosen] += 1
        self._in_flight[chosen] += 1
        if self._rotates:
            self._start = (self._start + 1) % ranks
        return chosen

    def reset(self, now_s: float) -> None:
        """The server starts anew, its coordinator too."""
        self._coordinator.reset(now_s)
        self._start, self._seen = 0, -1
        self._in_flight = [0] * len(self._in_flight)

    def ended(self, rank: int) -> None:
        """A request of `rank` got its last token."""
        self._in_flight[rank] -= 1
