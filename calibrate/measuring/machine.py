"""The machine that `measure` runs on: a GPU, or one that is pretended."""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrate.measuring.bench import Bench, CudaBench
from calibrate.measuring.clocks import read_clocks
from calibrate.measuring.device import Facts, as_facts, facts_of, properties_of, spec_of
from calibrate.measuring.dry_run import DryRunBench
from calibrate.measuring.library import NAME as FP8_LIBRARY
from calibrate.measuring.library import fp8_library
from calibrate.measuring.session import DRY_RUN, ENGINE, Session, package_version
from hwmodels.gpus import GPUS
from hwmodels.spec import GpuSpec
from twin.errors import InputError
from twin.naming import lookup

if TYPE_CHECKING:
    from kernels.case import Kernel
    from kernels.device import DeviceFacts
    from kernels.probes.probe import Probe

_NEEDS = (
    "from a clone: pip install -e '.[calibrate,kernels]', and a torch made for Triton 3.6 "
    "(docs/guide/calibrate.md)"
)


@dataclass(frozen=True, slots=True)
class Machine:
    """Who measures, what there is to launch, and what rows will say of it all.

    Attributes:
        gpu: what the plan is made for.
        device_facts: as `kernels.device` gives them, for the probes.
        gpus: how many GPUs there are.
    """

    bench: Bench
    session: Session
    gpu: GpuSpec
    probes: "dict[str, Probe]"
    device_facts: "DeviceFacts"
    gpus: int


def real_machine() -> Machine:
    """Return the first visible GPU.

    Raises:
        InputError: no PyTorch, no Triton, or no GPU that they can use.
    """
    torch = _torch(interpret=False)
    if not torch.cuda.is_available():
        raise InputError(
            "PyTorch sees no CUDA GPU",
            remedy="run it on a GPU machine, or pretend one with --dry-run",
        )

    from kernels.device import device_facts
    from kernels.timing import CudaTimer

    device = torch.device("cuda", torch.cuda.current_device())
    index = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
    clocks = read_clocks(index)
    facts = facts_of(properties_of(device))
    if clocks is not None and "boost_hz" in facts["assumed"]:
        facts["boost_hz"] = clocks.most_sm_hz
        facts["sources"]["boost_hz"] = "nvidia-smi: highest SM clock"
        facts["assumed"] = sorted(set(facts["assumed"]) - {"boost_hz"})
    kernels, probes = _catalogues()
    return Machine(
        bench=CudaBench(device, kernels, probes, CudaTimer(device), index),
        session=_session(facts, ENGINE, clocks.driver if clocks else "unknown"),
        gpu=spec_of(facts),
        probes=probes,
        device_facts=device_facts(device),
        gpus=torch.cuda.device_count(),
    )


def pretended_machine(gpu_name: str, seed: int) -> Machine:
    """Return a GPU that isn't there; kernels run on the CPU, in Triton's interpreter.

    Raises:
        InputError: no such GPU, or no PyTorch and Triton.
    """
    gpu = lookup(GPUS, gpu_name, "GPU", where="--as")
    torch = _torch(interpret=True)
    kernels, probes = _catalogues()
    device = torch.device("cpu")
    return Machine(
        bench=DryRunBench(device, kernels, probes, gpu, seed),
        session=_session(as_facts(gpu), DRY_RUN, "none"),
        gpu=gpu,
        probes=probes,
        device_facts=pretended_facts(gpu),
        gpus=1,
    )


def pretended_facts(gpu: GpuSpec) -> "DeviceFacts":
    """Return what the probes are told of a GPU that isn't there."""
    from kernels.device import DeviceFacts

    return DeviceFacts(
        capability=gpu.compute_capability,
        num_sms=gpu.num_sms,
        l2_bytes=gpu.l2_bytes,
        memory_bytes=gpu.visible_memory_bytes,
        max_clock_hz=gpu.boost_hz,
    )


def _catalogues() -> "tuple[dict[str, Kernel], dict[str, Probe]]":
    from kernels.catalogue import KERNELS
    from kernels.probes.catalogue import PROBES

    return {**KERNELS, FP8_LIBRARY: fp8_library()}, dict(PROBES)


def _session(facts: Facts, engine: str, driver: str) -> Session:
    import numpy
    import torch
    import triton

    return Session(
        facts=facts,
        engine=engine,
        engine_version=package_version(),
        driver=driver,
        cuda=str(torch.version.cuda or "none"),
        versions={
            "torch": str(torch.__version__),
            "triton": str(triton.__version__),
            "numpy": str(numpy.__version__),
        },
    )


def _torch(*, interpret: bool) -> Any:
    """Return PyTorch, with Triton ready to interpret where there is no GPU."""
    try:
        import torch

        if interpret and not torch.cuda.is_available():
            # Triton decides when it is imported.
            os.environ.setdefault("TRITON_INTERPRET", "1")
        import triton  # noqa: F401
    except ImportError as error:
        raise InputError(f"measuring needs {error.name}", remedy=_NEEDS) from None
    return torch
