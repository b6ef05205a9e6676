"""Between which contexts a KV dtype makes steps faster than 16 bits do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

SHORTEST = 16
_PER_OCTAVE = 4


@dataclass(frozen=True, slots=True)
class KvSide:
    """What one KV dtype costs; both are pure.

    Attributes:
        decode_s: seconds of a step of (sequences, context of each) that all decode.
        prefill_s: seconds to compute a prompt alone of (tokens, those of them that are cached).
    """

    decode_s: Callable[[int, int], float]
    prefill_s: Callable[[int, int], float]

    def request_s(
        self, seqs: int, prompt_tokens: int, output_tokens: int, cached_tokens: int = 0
    ) -> float:
        """Return the GPU seconds of one of `seqs` equal requests.

        Its prompt alone, and its share of the steps in which they decode together, over the
        context halfway through the answer.
        """
        step_s = self.decode_s(seqs, prompt_tokens + output_tokens // 2)
        return self.prefill_s(prompt_tokens, cached_tokens) + output_tokens * step_s / seqs


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The contexts between which a dtype is the faster, tokens, both included."""

    first: int
    last: int


def kv_break_even(
    plain: KvSide,
    other: KvSide,
    batches: Sequence[int],
    longest: int,
    output_tokens: int | None = None,
) -> dict[int, BreakEven | None]:
    """Return, by sequences that decode together, between which contexts `other` is the faster.

    Args:
        plain: 16-bit KV.
        other: the dtype that is judged.
        batches: numbers of sequences.
        longest: no longer context is looked at, tokens.
        output_tokens: None: by the decode step alone. Else by the GPU seconds of a request with
            such an answer, so that what the dtype loses in prefill counts; contexts are then
            lengths of the prompt.
    """
    found: dict[int, BreakEven | None] = {}
    for seqs in batches:

        def wins(context: int, seqs: int = seqs) -> bool:
            if output_tokens is None:
                return other.decode_s(seqs, context) < plain.decode_s(seqs, context)
            return other.request_s(seqs, context, output_tokens) < plain.request_s(
                seqs, context, output_tokens
            )

        found[seqs] = _widest(wins, contexts_up_to(longest))
    return found


def contexts_up_to(longest: int, per_octave: int = _PER_OCTAVE) -> list[int]:
    """Return context lengths from 16 tokens to `longest`, so many to each doubling."""
    found, step = [], 0
    while (context := round(SHORTEST * 2 ** (step / per_octave))) < longest:
        found.append(context)
        step += 1
    return [*found, longest]


def _widest(wins: Callable[[int], bool], contexts: list[int]) -> BreakEven | None:
    """The widest stretch of contexts that win, its ends to the token."""
    won = [wins(context) for context in contexts]
    best: tuple[float, int, int] | None = None
    start = 0
    for place, here in enumerate(won):
        if not here:
            start = place + 1
        elif best is None or contexts[place] / contexts[start] > best[0]:
            best = contexts[place] / contexts[start], start, place
    if best is None:
        return None
    _, low, high = best
    first, last = contexts[low], contexts[high]
    if low:
        first = _edge(wins, contexts[low - 1], first)
    if high + 1 < len(contexts):
        last = _edge(wins, contexts[high + 1], last)
    return BreakEven(first, last)


def _edge(wins: Callable[[int], bool], loses: int, won: int) -> int:
    """Return the winning context next to losing ones, between one of each."""
    while abs(won - loses) > 1:
        middle = (loses + won) // 2
        if wins(middle):
            won = middle
        else:
            loses = middle
    return won
