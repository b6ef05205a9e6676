"""Who times a step: CUDA events on a GPU, or nobody at all in a dry run."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float64]
Launch = Callable[[], None]

REPETITIONS = 20
_WARM_UPS = 3
_HOLD_CYCLES = 500_000
"""Cycles the stream waits before each step, so that the host has a lead (about 0.3 ms)."""


class StepClock(Protocol):
    """Times steps."""

    def seconds(self, launch: Launch, *, captured: bool) -> Floats:
        """Return the seconds of each repetition of a step.

        Args:
            launch: the step.
            captured: it runs as one CUDA graph.
        """
        ...


class CudaClock:
    """CUDA events around each step, the GPU waiting until the host is ahead."""

    def __init__(self, device: "torch.device", repetitions: int = REPETITIONS) -> None:
        self._device, self._repetitions = device, repetitions

    def seconds(self, launch: Launch, *, captured: bool) -> Floats:
        """Return the seconds of each repetition of a step."""
        import torch

        cuda: Any = torch.cuda
        launch()  # compiles what was never launched, and fills cuBLAS's workspace
        torch.cuda.synchronize(self._device)
        run = self._captured(launch) if captured else launch
        for _ in range(_WARM_UPS):
            run()
        events = [
            [cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(self._repetitions)
        ]
        for start, end in events:
            cuda._sleep(_HOLD_CYCLES)
            start.record()
            run()
            end.record()
        torch.cuda.synchronize(self._device)
        return np.array([start.elapsed_time(end) for start, end in events]) / 1e3

    def _captured(self, launch: Launch) -> Launch:
        import torch

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch()
        replay: Launch = graph.replay
        return replay


class PretendClock:
    """Launches nothing by itself: says the prediction times seeded noise, never a figure.

    Args:
        seed: of the noise.
        spread: its standard deviation.
    """

    def __init__(self, seed: int, spread: float = 0.02) -> None:
        self._random = np.random.default_rng(np.random.SeedSequence([seed, 7]))
        self._spread = spread

    def told(self, predicted_s: float) -> Floats:
        """Return the seconds of each repetition of a step that is predicted to take so long."""
        noise = 1 + self._spread * self._random.standard_normal(REPETITIONS)
        level = 1 + self._spread * self._random.standard_normal()
        return predicted_s * level * np.maximum(noise, 0.5)
