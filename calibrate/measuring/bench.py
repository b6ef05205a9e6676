"""`Bench`: what measures one item; and the one that does it on a GPU."""

import gc
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from calibrate.measuring.adapters import case_shape
from calibrate.measuring.clocks import Clocks, read_clocks
from calibrate.measuring.hashing import module_sha256, sources_sha256
from calibrate.measuring.item import DeviceLost, Item, Timed, Unmeasurable

if TYPE_CHECKING:
    import torch

    from kernels.case import Kernel
    from kernels.timing import Timer, Timing

_SEED = 7
_SHORT_S, _SHORT_REPETITIONS = 1e-3, 50
_REFERENCE_S = 1.0
_REFERENCE_BYTES = 2**30
_CLOCKS_AGE_S = 5.0
"""`nvidia-smi` takes as long as a whole item: so old a reading is still taken."""


class Bench(Protocol):
    """Measures items; the suite decides which and when."""

    def measure(self, item: Item) -> Timed:
        """Return an item's seconds.

        Raises:
            Unmeasurable: it cannot be measured here, and why.
            DeviceLost: nothing can be measured any more.
        """
        ...

    def sha256(self, item: Item) -> str | None:
        """Return the hash of what the item runs; None if there is no such thing."""
        ...

    def reference_bytes_per_s(self) -> float | None:
        """Read memory for a second and return how fast; None where that tells nothing."""
        ...

    def clocks(self) -> Clocks | None:
        """Return the clocks now; None if nothing tells them."""
        ...


class CudaBench:
    """Measures on a GPU.

    Args:
        device: where.
        kernels, probes: by name.
        timer: how launches are timed.
        index: of the GPU, as `nvidia-smi` knows it.
    """

    def __init__(
        self,
        device: "torch.device",
        kernels: "dict[str, Kernel]",
        probes: dict[str, Any],
        timer: "Timer",
        index: str,
    ) -> None:
        self._device, self._kernels, self._probes = device, kernels, probes
        self._timer, self._index = timer, index
        self._hashes: dict[str, str] = {}
        self._reference: torch.Tensor | None = None
        self._read_s = -math.inf
        self._clocks: Clocks | None = None

    def measure(self, item: Item) -> Timed:
        """Return an item's seconds on the GPU; memory it took is free again."""
        sha256 = self.sha256(item)
        if sha256 is None:
            raise Unmeasurable(f"there is no {item.launches}")
        timing = self._guarded(lambda: self._time(item))
        return as_timed(timing, sha256)

    def sha256(self, item: Item) -> str | None:
        """Return the hash of the kernel's or the probe's source."""
        found = self._hashes.get(item.launches)
        if found is None:
            found = source_hash(item, self._kernels, self._probes)
            if found is not None:
                self._hashes[item.launches] = found
        return found

    def reference_bytes_per_s(self) -> float | None:
        """Sum a gigabyte again and again for a second."""
        import torch

        if self._reference is None:
            self._reference = torch.ones(_REFERENCE_BYTES // 4, device=self._device)
        data, total_s, reads = self._reference, 0.0, 0
        start, end = (
            torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            for _ in range(2)
        )
        data.sum()
        while total_s < _REFERENCE_S:
            start.record()
            for _ in range(32):
                data.sum()
            end.record()
            end.synchronize()
            total_s += start.elapsed_time(end) / 1e3
            reads += 32
        return reads * _REFERENCE_BYTES / total_s

    def clocks(self) -> Clocks | None:
        """Return what `nvidia-smi` tells, or told a moment ago."""
        if time.monotonic() - self._read_s > _CLOCKS_AGE_S:
            self._clocks = read_clocks(self._index)
            self._read_s = time.monotonic()
        return self._clocks

    def _time(self, item: Item) -> "Timing":
        from kernels.timing import MIN_REPETITIONS, L2State

        if item.is_probe:
            timing: Timing = self._probes[item.launches].measure(
                item.shape, self._device, self._timer
            )
            return timing
        case = self._kernels[item.launches].make_case(
            case_shape(item), item.dtype, self._device, _SEED
        )
        repetitions = _SHORT_REPETITIONS if item.work_s < _SHORT_S else MIN_REPETITIONS
        return self._timer.time(case.launch, l2=L2State(item.l2), repetitions=repetitions)

    def _guarded(self, work: "Callable[[], Timing]") -> "Timing":
        """Turn what goes wrong into a reason, and see whether the GPU still answers."""
        import torch

        try:
            return work()
        except torch.OutOfMemoryError:
            reason = "out of memory"
        except Exception as error:
            reason = first_line(error)
        finally:
            if torch.cuda.is_available() and torch.cuda.memory_reserved() > 2**32:
                torch.cuda.empty_cache()
        gc.collect()  # a traceback may hold what was allocated
        try:
            torch.cuda.synchronize(self._device)
            torch.cuda.empty_cache()
        except Exception as error:
            raise DeviceLost(f"{reason}; then {first_line(error)}") from None
        raise Unmeasurable(reason)


def as_timed(timing: "Timing", sha256: str) -> Timed:
    """Return a timing as a row needs it.

    Raises:
        Unmeasurable: it took no time that can be told, or too few launches.
    """
    median = timing.median_s
    if not 0 < median < float("inf"):
        raise Unmeasurable(f"took {median:g} s, which no row can hold")
    if len(timing.seconds) < 20:
        raise Unmeasurable(f"was launched {len(timing.seconds)} times; a row needs 20")
    return Timed(median, max(timing.p90_s, median), len(timing.seconds), timing.l2.value, sha256)


def source_hash(item: Item, kernels: "dict[str, Kernel]", probes: dict[str, Any]) -> str | None:
    """Return the hash of what an item runs; None if neither table has it."""
    import torch

    if item.is_probe:
        probe = probes.get(item.launches)
        return None if probe is None else module_sha256(probe.measure)
    kernel = kernels.get(item.launches)
    if kernel is None:
        return None
    return sources_sha256(kernel.sources, f"{kernel.name} of torch {torch.__version__}")


def first_line(error: BaseException) -> str:
    """Return an error in one line: Triton and CUDA print pages."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(f"{type(error).__name__}: {lines[0] if lines else ''}".split())[:200]
