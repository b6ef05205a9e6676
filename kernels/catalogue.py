"""Every kernel that is tested, compiled and measured, one line each."""

from kernels.case import Kernel
from kernels.norm.rms_norm import RMS_NORM
from kernels.probes.kernels import PROBE_KERNELS

KERNELS: dict[str, Kernel] = {kernel.name: kernel for kernel in (RMS_NORM, *PROBE_KERNELS)}
