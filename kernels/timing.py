"""Timing launches on a GPU, the state of the L2 explicit; and a clock that only pretends."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

MIN_REPETITIONS = 20
_HOLD_CYCLES = 200_000
"""Cycles the stream is held back so that the host has queued everything behind (about 0.1 ms)."""
_FLUSH_SHARE = 4
"""The flush writes so many times the L2."""


class L2State(Enum):
    """What the L2 holds when a launch begins."""

    WARM = "warm"
    COLD = "cold"


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of single launches."""

    seconds: NDArray[np.float64]
    l2: L2State

    @property
    def median_s(self) -> float:
        """The median launch."""
        return float(np.median(self.seconds))

    @property
    def p90_s(self) -> float:
        """The launch that nine in ten don't exceed."""
        return max(float(np.percentile(self.seconds, 90)), self.median_s)


class Timer(Protocol):
    """Times launches; `calibrate` and the tests give different ones."""

    def time(
        self, launch: Callable[[], object], *, l2: L2State, repetitions: int = MIN_REPETITIONS
    ) -> Timing:
        """Return the duration of single launches, after a warm-up."""
        ...


class CudaTimer:
    """CUDA events around each launch of a stream that the host keeps ahead of.

    Cold: a buffer several times the L2 is written before each launch. Warm: launches follow each
    other inside one CUDA graph where the launch can be captured, so that short kernels aren't
    measured by the host's pace; the gap between kernels of a graph is then part of the time, as
    it is in serving.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        l2_bytes = torch.cuda.get_device_properties(device).L2_cache_size
        self._flush = torch.empty(_FLUSH_SHARE * l2_bytes, dtype=torch.int8, device=device)

    def time(
        self, launch: Callable[[], object], *, l2: L2State, repetitions: int = MIN_REPETITIONS
    ) -> Timing:
        """Return the duration of single launches, after a warm-up."""
        launch()
        torch.cuda.synchronize(self.device)
        if l2 is L2State.COLD:
            return Timing(self._each(launch, repetitions, flush=True), l2)
        graph = _captured(launch)
        if graph is None:
            return Timing(self._each(launch, repetitions, flush=False), l2)
        per_replay = _CAPTURED
        seconds = self._each(graph.replay, repetitions, flush=False) / per_replay
        return Timing(seconds, l2)

    def _each(
        self, launch: Callable[[], object], repetitions: int, *, flush: bool
    ) -> NDArray[np.float64]:
        starts = [torch.cuda.Event(enable_timing=True) for _ in range(repetitions)]
        ends = [torch.cuda.Event(enable_timing=True) for _ in range(repetitions)]
        for start, end in zip(starts, ends, strict=True):
            torch.cuda._sleep(_HOLD_CYCLES)
            if flush:
                self._flush.zero_()
            start.record()
            launch()
            end.record()
        torch.cuda.synchronize(self.device)
        times_ms = [start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)]
        return np.array(times_ms) / 1e3


_CAPTURED = 16
"""Launches in a graph."""


def _captured(launch: Callable[[], object]) -> "torch.cuda.CUDAGraph | None":
    """Return a graph of launches; None if the launch cannot be captured."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(_CAPTURED):
                launch()
    except RuntimeError:
        torch.cuda.synchronize()
        return None
    return graph


class FakeTimer:
    """Launches once and says the seconds it was told: for machines without a GPU, never a figure.

    Args:
        seconds_of: gives the seconds of the launch that is timed next.
    """

    def __init__(self, seconds_of: Callable[[], float]) -> None:
        self._seconds_of = seconds_of
        self.launches = 0

    def time(
        self, launch: Callable[[], object], *, l2: L2State, repetitions: int = MIN_REPETITIONS
    ) -> Timing:
        """Launch once; return `repetitions` times the told seconds."""
        launch()
        self.launches += 1
        return Timing(np.full(repetitions, self._seconds_of()), l2)
