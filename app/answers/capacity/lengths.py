"""How long a scenario's requests are and what they share, without serving any of them."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.answers.forecast.sampled import MOST, first_of
from twin.errors import InputError
from twin.request import Request, SegmentContent
from twin.workload.build import LoadedWorkload


@dataclass(frozen=True, slots=True)
class Lengths:
    """The requests that the engine takes.

    Attributes:
        prompt, output: tokens, by request.
        shared: leading tokens of each prompt that an earlier request held too; at most all but
            one, since engines compute the last one.
        cut: whether there are more than were looked at.
    """

    prompt: NDArray[np.int64]
    output: NDArray[np.int64]
    shared: NDArray[np.int64]
    cut: bool = False

    @property
    def held(self) -> NDArray[np.int64]:
        """Tokens in KV at the end of each: the last one generated is never written."""
        held: NDArray[np.int64] = np.maximum(1, self.prompt + self.output - 1)
        return held

    @property
    def mean(self) -> int:
        """Mean context at the end, tokens."""
        return round(float(self.held.mean()))

    def percentile(self, percent: float) -> int:
        """Return a percentile of the context at the end, tokens."""
        return round(float(np.percentile(self.held, percent)))


def lengths_of(workload: LoadedWorkload, seed: int, max_model_len: int) -> Lengths:
    """Return the lengths of a workload's requests.

    Every request is taken to end as it arrives: what follows in a session or from a client has the
    same lengths, whatever serves it.

    Args:
        workload: with its files read.
        seed: the scenario's.
        max_model_len: longest context, tokens.

    Raises:
        InputError: nothing arrives, or nothing that the engine takes.
    """
    rows: list[tuple[int, int, int]] = []
    shortened, drawn = first_of(workload), 0
    seen: dict[int, int] = {}
    cut = False
    for request in _all(shortened, seed, max_model_len):
        drawn += 1
        prompt = request.prompt_tokens
        if prompt >= max_model_len:
            continue
        if len(rows) == MOST:
            cut = True
            break
        output = min(request.output_tokens, max_model_len - prompt)
        rows.append((prompt, output, _shared(request, output, seen)))
    if not rows:
        raise InputError(
            f"no prompt is shorter than {max_model_len} tokens", remedy="raise policy.max_model_len"
        )
    prompts, outputs, shared = np.array(rows, dtype=np.int64).T
    return Lengths(prompts, outputs, shared, cut or (shortened is not workload and drawn >= MOST))


def _all(workload: LoadedWorkload, seed: int, max_model_len: int) -> Iterator[Request]:
    source = workload.source(np.random.SeedSequence(seed), max_model_len)
    waiting = [(request.arrival_s, request.index, request) for request in source.start()]
    heapq.heapify(waiting)
    while waiting:
        arrival_s, _, request = heapq.heappop(waiting)
        yield request
        for following in source.on_end(request, arrival_s, rejected=False):
            heapq.heappush(waiting, (following.arrival_s, following.index, following))


def _shared(request: Request, output: int, seen: dict[int, int]) -> int:
    """Return what a prompt shares with earlier requests, and remember its own segments.

    Args:
        request: its content is a chain of segments, or none.
        output: tokens it generates.
        seen: by chained segment, up to which token somebody held it.
    """
    content = request.content
    if not isinstance(content, SegmentContent):
        return 0
    total = request.prompt_tokens + output
    last = len(content.ids) - 1
    shared, chained = 0, True
    for place, (identity, end) in enumerate(zip(content.ids, content.ends, strict=True)):
        upto = total if place == last else min(end, total)
        known = seen.get(identity, 0)
        if chained:
            shared = max(shared, min(known, upto))
            chained = known >= upto
        seen[identity] = max(known, upto)
    return min(shared, request.prompt_tokens - 1)
