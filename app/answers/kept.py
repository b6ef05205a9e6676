"""`Shelf`: answers that were given, so that nothing is worked out twice."""

from collections import OrderedDict
from threading import Lock
from typing import Any

_MOST = 64


class Shelf:
    """Answers by question; the one not asked for longest goes first.

    Pages of several visitors are drawn by several threads of one server.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: OrderedDict[str, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str) -> Any:
        """Return an answer; None: it is not here."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: str, answer: Any) -> None:
        """Keep an answer."""
        with self._lock:
            self._kept[key] = answer
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


SHARED = Shelf()
"""Forecasts of built-in scenarios, which are the same for everybody; of uploads none comes here."""
