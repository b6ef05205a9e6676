"""Every kernel that is tested, compiled and measured, one line each."""

from kernels.attention.decode_cases import CONTIGUOUS_DECODE, PAGED_DECODE
from kernels.attention.prefill_cases import PAGED_PREFILL
from kernels.attention.quantised_cases import QUANTISED_DECODE, QUANTISED_DECODE_BF16
from kernels.case import Kernel
from kernels.kv.cases import QUANTISE_KV, WRITE_KV
from kernels.norm.rms_norm import RMS_NORM

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        RMS_NORM,
        PAGED_DECODE,
        CONTIGUOUS_DECODE,
        PAGED_PREFILL,
        QUANTISED_DECODE,
        QUANTISED_DECODE_BF16,
        WRITE_KV,
        QUANTISE_KV,
    )
}
