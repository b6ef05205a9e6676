"""Every kernel that is tested, compiled and measured, one line each."""

from kernels.attention.decode_cases import CONTIGUOUS_DECODE, PAGED_DECODE
from kernels.attention.prefill_cases import PAGED_PREFILL
from kernels.case import Kernel
from kernels.norm.rms_norm import RMS_NORM

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        RMS_NORM,
        PAGED_DECODE,
        CONTIGUOUS_DECODE,
        PAGED_PREFILL,
    )
}
