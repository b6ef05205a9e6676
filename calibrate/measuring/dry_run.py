"""A dry run: every kernel and probe is launched once, and seconds are pretended."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrate.measuring.bench import first_line, source_hash
from calibrate.measuring.clocks import Clocks
from calibrate.measuring.item import L2, Item, Timed, Unmeasurable
from calibrate.measuring.pretend import pretended
from hwmodels.spec import GpuSpec

if TYPE_CHECKING:
    import torch

    from kernels.case import Kernel

_SEED = 7


class DryRunBench:
    """Launches each kernel and probe once at its smallest shape, and pretends all seconds.

    Args:
        device: where it launches; a CPU will do.
        kernels, probes: by name.
        gpu: the GPU that is pretended.
        seed: of the noise.
    """

    def __init__(
        self,
        device: "torch.device",
        kernels: "dict[str, Kernel]",
        probes: dict[str, Any],
        gpu: GpuSpec,
        seed: int,
    ) -> None:
        self._device, self._kernels, self._probes = device, kernels, probes
        self._gpu, self._seed = gpu, seed
        self._reasons: dict[tuple[str, str], str] = {}
        self._launched: set[str] = set()
        self._hashes: dict[str, str | None] = {}

    @property
    def launched(self) -> list[str]:
        """Names of the kernels and probes that ran."""
        return sorted(self._launched)

    def measure(self, item: Item) -> Timed:
        """Launch what the item runs, if nothing did before; return pretended seconds."""
        what = (item.launches, item.dtype)
        if what not in self._reasons:
            self._reasons[what] = self._launch(item)
        reason = self._reasons[what]
        if reason:
            raise Unmeasurable(reason)
        seconds = pretended(item, self._gpu, self._seed)
        sha256 = self.sha256(item)
        assert sha256 is not None  # noqa: S101  it was launched
        l2: L2 = item.l2 or ("cold" if item.shape.get("cold", 1) else "warm")
        p90 = float(np.percentile(seconds, 90))
        return Timed(float(np.median(seconds)), p90, len(seconds), l2, sha256)

    def sha256(self, item: Item) -> str | None:
        """Return the hash of the kernel's or the probe's source."""
        if item.launches not in self._hashes:
            self._hashes[item.launches] = source_hash(item, self._kernels, self._probes)
        return self._hashes[item.launches]

    def reference_bytes_per_s(self) -> float | None:
        """Nothing drifts here."""
        return None

    def clocks(self) -> Clocks | None:
        """Return none: there is no GPU to ask."""
        return None

    def _launch(self, item: Item) -> str:
        """Return why it cannot be launched; empty if it was."""
        try:
            if item.is_probe:
                return self._launch_probe(item.launches)
            kernel = self._kernels.get(item.launches)
            if kernel is None:
                return f"there is no {item.launches}"
            # What the interpreter cannot compute is pretended, but not launched.
            if kernel.interpreted:
                self._launch_smallest(kernel, item.dtype)
                self._launched.add(item.launches)
        except Exception as error:
            return first_line(error)
        return ""

    def _launch_smallest(self, kernel: "Kernel", dtype: str) -> None:
        """Launch the smallest shape that has work, in the item's format if that can be."""
        known = kernel.interpreted
        dtype = dtype if dtype in known else known[0]
        for shape in sorted(kernel.shapes, key=lambda s: math.prod(max(n, 1) for n in s.values())):
            case = kernel.make_case(shape, dtype, self._device, _SEED)
            if case.moved_bytes > 0:
                case.launch()
                return

    def _launch_probe(self, name: str) -> str:
        from kernels.timing import FakeTimer

        probe = self._probes.get(name)
        if probe is None:
            return f"there is no {name}"
        # What needs a GPU is pretended, but not launched.
        if probe.needs == "any":
            probe.measure(probe.small[0], self._device, FakeTimer(lambda: 1e-5))
            self._launched.add(name)
        return ""
