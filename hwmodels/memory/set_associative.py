"""A trace-driven set-associative cache or TLB with LRU: the reference for the closed forms."""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: spreads strides over the sets


class SetAssociativeCache:
    """A cache of lines, or a TLB of pages, that sees every access.

    Args:
        sets: how many.
        ways: entries a set.
        unit_bytes: line or page.
        sub_entries: units that share one entry, each valid by itself (sectors of a line, pages
            of a TLB entry).
        hashed: sets are chosen by a hash of the address, not by its low bits.

    State stays from one `access` to the next.
    """

    def __init__(
        self, sets: int, ways: int, unit_bytes: int, sub_entries: int = 1, hashed: bool = False
    ) -> None:
        if min(sets, ways, unit_bytes, sub_entries) < 1:
            raise ValueError("sets, ways, unit_bytes and sub_entries are at least 1")
        self.sets, self.ways, self.sub_entries = sets, ways, sub_entries
        self.unit_bytes, self._hashed = unit_bytes, hashed
        self._tags: Ints = np.full((sets, ways), -1, dtype=np.int64)
        self._used: Ints = np.zeros((sets, ways), dtype=np.int64)
        self._valid: Bools = np.zeros((sets, ways, sub_entries), dtype=bool)
        self._now = 0

    @property
    def reach_bytes(self) -> int:
        """What it can hold at most."""
        return self.sets * self.ways * self.sub_entries * self.unit_bytes

    def access(self, addresses: Ints) -> Bools:
        """Return whether each access hits, in order; addresses in bytes, shape (n,).

        The sets are independent, so the i-th accesses of all sets are taken together.
        """
        units = np.asarray(addresses, dtype=np.int64) // self.unit_bytes
        tags, subs = units // self.sub_entries, units % self.sub_entries
        places = self._place(tags)
        order = np.argsort(places, kind="stable")
        counts = np.bincount(places, minlength=self.sets)
        firsts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        hits = np.zeros(units.size, dtype=bool)
        for turn in range(int(counts.max()) if units.size else 0):
            sets = np.flatnonzero(counts > turn)
            rows = order[firsts[sets] + turn]
            self._now += 1
            hits[rows] = self._turn(sets, tags[rows], subs[rows])
        return hits

    def misses(self, addresses: Ints) -> int:
        """Return how many of the accesses miss."""
        return int((~self.access(addresses)).sum())

    def _turn(self, sets: Ints, tags: Ints, subs: Ints) -> Bools:
        """One access in each of some sets."""
        same = self._tags[sets] == tags[:, None]
        known = same.any(axis=1)
        # The entry itself, else the one unused for longest.
        ways = np.where(known, same.argmax(axis=1), self._used[sets].argmin(axis=1))
        hits: Bools = known & self._valid[sets, ways, subs]
        fresh = ~known
        self._tags[sets[fresh], ways[fresh]] = tags[fresh]
        self._valid[sets[fresh], ways[fresh]] = False
        self._valid[sets, ways, subs] = True
        self._used[sets, ways] = self._now
        return hits

    def _place(self, tags: Ints) -> Ints:
        if not self._hashed:
            return tags % self.sets
        mixed = (tags.astype(np.uint64) * _MIX) >> np.uint64(20)
        return (mixed % np.uint64(self.sets)).astype(np.int64)
