"""Prefix identity of many requests as flat arrays."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from twin.request import SegmentContent

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SegmentTable:
    """Chained segments of n requests (see `twin.request.SegmentContent`).

    Attributes:
        ids, ends: chained id and end position of every prompt segment, all requests in a row.
        offsets: request i owns the slice `offsets[i]:offsets[i + 1]`; shape (n + 1,).
        block_tokens: every segment is a block of so many tokens as the file tells them, the last
            one of a prompt perhaps less; None: they are not blocks of one size.
        answer_ids: id of whatever follows a request's segments: the prompt's tail beyond them,
            if any, and the answer; shape (n,).
    """

    ids: Ints
    ends: Ints
    offsets: Ints
    answer_ids: Ints
    block_tokens: int | None = None

    def take(self, rows: Ints) -> "SegmentTable":
        """Return the segments of the given requests, in that order."""
        starts = self.offsets[rows]
        counts = self.offsets[rows + 1] - starts
        offsets = np.concatenate(([0], np.cumsum(counts)))
        flat = np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts, counts)
        return replace(
            self,
            ids=self.ids[flat],
            ends=self.ends[flat],
            offsets=offsets,
            answer_ids=self.answer_ids[rows],
        )

    def contents(self, prompt_tokens: Ints, output_tokens: Ints) -> list[SegmentContent]:
        """Return the content of each request."""
        ids, ends = self.ids.tolist(), self.ends.tolist()
        offsets = self.offsets.tolist()
        totals = (prompt_tokens + output_tokens).tolist()
        return [
            SegmentContent((*ids[a:b], answer), (*ends[a:b], total))
            for a, b, answer, total in zip(
                offsets, offsets[1:], self.answer_ids.tolist(), totals, strict=False
            )
        ]


@dataclass(slots=True)
class SegmentBuilder:
    """Collects segments request by request; ids come out dense and chained."""

    _known: dict[tuple[int, object, int], int] = field(default_factory=dict)
    _next_id: int = 0
    _sizes: set[int | None] = field(default_factory=set)
    _ids: list[int] = field(default_factory=list)
    _ends: list[int] = field(default_factory=list)
    _offsets: list[int] = field(default_factory=lambda: [0])
    _answers: list[int] = field(default_factory=list)

    def fresh_id(self) -> int:
        """Return an id nobody else has."""
        self._next_id += 1
        return self._next_id - 1

    def add_blocks(self, blocks: Sequence[int], block_tokens: int, prompt_tokens: int) -> None:
        """Add a request by the hash of each block of its prompt, the last one perhaps partial.

        A block is told apart by its hash, its end and the block before it, so hashes that are
        not chained in the file come out chained.
        """
        self._sizes.add(block_tokens)
        known, parent, end = self._known, -1, 0
        for block in blocks:
            end = min(end + block_tokens, prompt_tokens)
            key = (parent, block, end)
            found = known.get(key)
            if found is None:
                found = known[key] = self.fresh_id()
            parent = found
            self._ids.append(parent)
            self._ends.append(end)
        self._close(self.fresh_id())

    def add_segments(self, ids: Iterable[int], ends: Iterable[int], answer_id: int) -> None:
        """Add a request whose chained segments are known."""
        self._sizes.add(None)
        self._ids.extend(ids)
        self._ends.extend(ends)
        self._close(answer_id)

    def _close(self, answer_id: int) -> None:
        self._offsets.append(len(self._ids))
        self._answers.append(answer_id)

    def build(self) -> SegmentTable:
        """Return the table of all requests added."""
        return SegmentTable(
            np.array(self._ids, dtype=np.int64),
            np.array(self._ends, dtype=np.int64),
            np.array(self._offsets, dtype=np.int64),
            np.array(self._answers, dtype=np.int64),
            next(iter(self._sizes)) if len(self._sizes) == 1 else None,
        )
