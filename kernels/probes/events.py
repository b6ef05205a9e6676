"""Seconds of launches where the timers' own ways don't fit: held streams, and the host's clock."""

import time
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray

from kernels.device import device_facts
from kernels.timing import MIN_REPETITIONS

_CLOCK_HZ = 2e9
"""Of the cycles that a stream is held, where the device doesn't tell its clock."""

Launch = Callable[[], object]


def event_seconds(
    device: torch.device, launch: Launch, *, hold_s: float = 0.0, repetitions: int = MIN_REPETITIONS
) -> NDArray[np.float64]:
    """Return seconds between CUDA events around a launch, after one that isn't counted.

    Args:
        hold_s: so long the stream is kept busy first, while the host queues what `launch` asks
            for; 0: the stream is empty, and waits for the host.
    """
    launch()
    clock_hz = device_facts(device).max_clock_hz or _CLOCK_HZ
    found = []
    for _ in range(repetitions):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize(device)
        if hold_s:
            torch.cuda._sleep(int(hold_s * clock_hz))
        start.record()
        launch()
        end.record()
        end.synchronize()
        found.append(start.elapsed_time(end) / 1e3)
    return np.array(found)


def wall_seconds(
    device: torch.device, launch: Launch, *, repetitions: int = MIN_REPETITIONS
) -> NDArray[np.float64]:
    """Return what the host waits for a launch and its end, after one that isn't counted."""
    launch()
    found = []
    for _ in range(repetitions):
        torch.cuda.synchronize(device)
        start_s = time.perf_counter()
        launch()
        torch.cuda.synchronize(device)
        found.append(time.perf_counter() - start_s)
    return np.array(found)
