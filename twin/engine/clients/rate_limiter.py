"""The rate to which clients keep their retries in adaptive mode.

Constants and rules are those of botocore (`botocore/retries/{adaptive,throttling,bucket}.py`),
which grows its rate like TCP CUBIC's window. It differs in two points: any attempt that fails
counts as throttled, since servers of language models seldom say so before clients lose patience;
and first attempts are never held back, since users do not wait to ask.
"""

import math

_SCALE = 0.4
_BETA = 0.7
_SMOOTHING = 0.8
_WINDOW_S = 0.5
_MOST_TIMES_MEASURED = 2.0
_LEAST_RATE = 0.5


class RateLimiter:
    """A token bucket whose rate falls by a factor with failures and rises again with time.

    Attributes:
        rate: retries a second that it lets through; not in force before the first failure.
    """

    def __init__(self) -> None:
        self.rate = 1.0
        self._in_force = False
        self._capacity = self._tokens = 1.0
        self._filled_s = 0.0
        self._top_rate = 0.0
        self._failed_s = 0.0
        self._measured = 0.0
        self._window_s = 0.0
        self._answers = 0

    def succeeded(self, now_s: float) -> None:
        """An attempt succeeded."""
        measured = self._measure(now_s)
        flat_s = math.cbrt(self._top_rate * (1 - _BETA) / _SCALE)
        grown = _SCALE * (now_s - self._failed_s - flat_s) ** 3 + self._top_rate
        self._set_rate(min(grown, _MOST_TIMES_MEASURED * measured), now_s)

    def failed(self, now_s: float) -> None:
        """An attempt failed."""
        measured = self._measure(now_s)
        self._top_rate = min(measured, self.rate) if self._in_force else measured
        self._failed_s, self._in_force = now_s, True
        self._set_rate(min(self._top_rate * _BETA, _MOST_TIMES_MEASURED * measured), now_s)

    def reserve(self, now_s: float) -> float:
        """Take a place among the retries; return when it may be sent, now or later."""
        if not self._in_force:
            return now_s
        self._fill(now_s)
        self._tokens -= 1
        return now_s + max(0.0, -self._tokens) / self.rate

    def _measure(self, now_s: float) -> float:
        """Count an answer; return how many there are a second."""
        window_s = math.floor(now_s / _WINDOW_S) * _WINDOW_S
        self._answers += 1
        if window_s > self._window_s:
            rate = self._answers / (window_s - self._window_s)
            self._measured = rate * _SMOOTHING + self._measured * (1 - _SMOOTHING)
            self._answers, self._window_s = 0, window_s
        return self._measured

    def _set_rate(self, rate: float, now_s: float) -> None:
        self._fill(now_s)
        self.rate = max(rate, _LEAST_RATE)
        self._capacity = max(1.0, rate)
        self._tokens = min(self._tokens, self._capacity)

    def _fill(self, now_s: float) -> None:
        self._tokens = min(self._capacity, self._tokens + (now_s - self._filled_s) * self.rate)
        self._filled_s = now_s
