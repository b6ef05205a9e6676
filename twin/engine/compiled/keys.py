"""Keys of KV blocks as numbers of 64 bits."""

from collections.abc import Sequence

ID_LIMIT = 2**38
"""A segment's id below it and the index of a block fit into one number."""

_LARGE = 2**62
_FIRST_KNOWN = -(2**62)  # no segment's key is negative, and no request's own is so low


class KeyNumbers:
    """Numbers in place of keys that are too large, the same for the same key."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def of(self, keys: Sequence[int]) -> Sequence[int]:
        """Return keys as they stand in tables."""
        if not keys or (min(keys) >= 0 and max(keys) < _LARGE):
            return keys
        known = self._known
        return [
            key if 0 <= key < _LARGE else known.setdefault(key, _FIRST_KNOWN + len(known))
            for key in keys
        ]
