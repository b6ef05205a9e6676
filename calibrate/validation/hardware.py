"""Where steps run: this machine's GPU, or a CPU that only pretends how long they take."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from calibrate.validation.batch import Batch
from calibrate.validation.clock import CudaClock, Floats, PretendClock
from calibrate.validation.network import Network, build_network
from calibrate.validation.shapes import RankShapes, shrunk, shrunk_batch
from calibrate.validation.step_run import StepRun, step_inputs
from hwmodels.spec import GpuSpec
from twin.errors import InputError

if TYPE_CHECKING:
    import torch

_MEMORY_SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class Trial:
    """A batch to run.

    Attributes:
        batch: request by request.
        padded_tokens: rows of a CUDA graph; None: it runs without one.
        predicted_s: what the twin says.
    """

    batch: Batch
    padded_tokens: int | None
    predicted_s: float


@dataclass(frozen=True, slots=True)
class Machine:
    """What a verdict says of where it was obtained."""

    gpu: str
    driver: str
    versions: Mapping[str, str] = field(hash=False)


class Hardware(Protocol):
    """Runs steps."""

    machine: Machine

    def prepare(self, shapes: RankShapes, batches: Sequence[Batch], seed: int) -> None:
        """Make a network that has room for the batches."""
        ...

    def seconds(self, trial: Trial) -> Floats:
        """Run one batch again and again; return the seconds of each run."""
        ...


class GpuHardware:
    """This machine's first visible GPU.

    Args:
        wanted: the part that the scenario names.

    Raises:
        InputError: no PyTorch, no Triton, no GPU, or another than the scenario's.
    """

    def __init__(self, wanted: GpuSpec) -> None:
        torch = _torch()
        if not torch.cuda.is_available():
            raise InputError(
                "PyTorch sees no CUDA GPU",
                remedy="run it on a GPU machine, or pretend one with --dry-run",
            )
        self._device = torch.device("cuda", torch.cuda.current_device())
        _check_part(torch.cuda.get_device_properties(self._device), wanted)
        self._clock = CudaClock(self._device)
        self._network: Network | None = None
        self.machine = Machine(torch.cuda.get_device_name(self._device), _driver(), _versions())

    def prepare(self, shapes: RankShapes, batches: Sequence[Batch], seed: int) -> None:
        """Make a network that has room for the batches."""
        self._network = build_network(shapes, batches, self._device, seed)

    def seconds(self, trial: Trial) -> Floats:
        """Run one batch again and again; return the seconds of each run."""
        import torch

        if self._network is None:
            raise ValueError("prepare comes first")
        try:
            inputs = step_inputs(self._network, trial.batch, trial.padded_tokens)
            run = StepRun(self._network, inputs)
            return self._clock.seconds(run, captured=trial.padded_tokens is not None)
        except torch.cuda.OutOfMemoryError:
            raise InputError(
                f"a step of {trial.batch.tokens} tokens does not fit into the GPU's memory",
                remedy="lower policy.max_num_batched_tokens",
            ) from None


class PretendedHardware:
    """A dry run: one small step of each kind is launched, and all seconds are pretended.

    Args:
        wanted: the part that the scenario names.
        seed: of the pretended noise.

    Raises:
        InputError: no PyTorch or no Triton.
    """

    def __init__(self, wanted: GpuSpec, seed: int) -> None:
        torch = _torch()
        on_gpu = torch.cuda.is_available()
        self._device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else _cpu()
        self._clock = PretendClock(seed)
        self._network: Network | None = None
        self.launched: list[str] = []
        """Kinds of steps that were really launched."""
        self.machine = Machine(f"{wanted.title}, pretended", "none", _versions())

    def prepare(self, shapes: RankShapes, batches: Sequence[Batch], seed: int) -> None:
        """Make a network that has room for small batches of the same kinds."""
        small = [shrunk_batch(batch) for batch in batches]
        self._network = build_network(shrunk(shapes), small, self._device, seed)

    def seconds(self, trial: Trial) -> Floats:
        """Launch the first step of each kind, and pretend how long it took."""
        if self._network is None:
            raise ValueError("prepare comes first")
        batch = shrunk_batch(trial.batch)
        kind = f"{bool(batch.decodes)} {bool(batch.chunks)} {trial.padded_tokens is not None}"
        if kind not in self.launched:
            self.launched.append(kind)
            padded = None if trial.padded_tokens is None else batch.tokens + 1
            StepRun(self._network, step_inputs(self._network, batch, padded))()
        return self._clock.told(trial.predicted_s)


def run_trials(
    hardware: Hardware,
    trials: Sequence[Trial],
    deadline_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> list[Floats]:
    """Return the seconds of each trial in order, of as many as there is time for."""
    found: list[Floats] = []
    longest_s = 0.0
    for trial in trials:
        started_s = clock()
        if found and started_s + longest_s > deadline_s:
            break
        found.append(hardware.seconds(trial))
        longest_s = max(longest_s, clock() - started_s)
    return found


def _check_part(found: "torch.cuda._CudaDeviceProperties", wanted: GpuSpec) -> None:
    """A part is told by its size: drivers spell its name in many ways."""
    near = abs(found.total_memory / wanted.visible_memory_bytes - 1) <= _MEMORY_SPREAD
    capability = (found.major, found.minor)
    same = capability == wanted.compute_capability
    if not (near and same and found.multi_processor_count == wanted.num_sms):
        raise InputError(
            f"this machine's GPU is {found.name} with {found.multi_processor_count} SMs, the "
            f"scenario's is {wanted.title} with {wanted.num_sms}",
            remedy="validate on the scenario's GPU, or set gpu to this one",
        )


def _torch() -> Any:
    """Return PyTorch; Triton interprets where there is no GPU."""
    try:
        import torch

        if not torch.cuda.is_available():
            # Triton decides when a kernel is defined, and has some of its own: so before it is
            # imported.
            os.environ.setdefault("TRITON_INTERPRET", "1")
        import triton  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"running steps needs {error.name}",
            remedy="from a clone: pip install -e '.[calibrate,kernels]', and a torch made for "
            "Triton 3.6 (docs/guide/calibrate.md)",
        ) from None
    return torch


def _cpu() -> "torch.device":
    import torch

    return torch.device("cpu")


def _versions() -> dict[str, str]:
    import numpy
    import torch
    import triton

    return {
        "torch": str(torch.__version__),
        "triton": str(triton.__version__),
        "numpy": str(numpy.__version__),
        "cuda": str(torch.version.cuda or "none"),
    }


def _driver() -> str:
    """The driver's version as `nvidia-smi` tells it; `unknown` where it doesn't."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return "unknown"
    command = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    lines = told.stdout.split()
    return lines[0] if lines else "unknown"
