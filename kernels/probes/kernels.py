"""The probes' Triton kernels, for the catalogue of kernels."""

from kernels.case import Kernel
from kernels.probes.chase import CHASE_KERNEL
from kernels.probes.first_shape import FIRST_SHAPE_KERNEL
from kernels.probes.gather import GATHER_KERNEL
from kernels.probes.lifetime_race import LATE_COPY_KERNEL
from kernels.probes.offset_copy import OFFSET_COPY_KERNEL
from kernels.probes.shared_memory import SHARED_MEMORY_KERNEL
from kernels.probes.stream import STREAM_KERNEL

PROBE_KERNELS: tuple[Kernel, ...] = (
    STREAM_KERNEL,
    CHASE_KERNEL,
    GATHER_KERNEL,
    OFFSET_COPY_KERNEL,
    SHARED_MEMORY_KERNEL,
    FIRST_SHAPE_KERNEL,
    LATE_COPY_KERNEL,
)
