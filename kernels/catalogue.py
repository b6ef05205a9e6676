"""Every kernel that is tested, compiled and measured, one line each."""

from kernels.activation import SILU_MUL
from kernels.attention.decode_cases import CONTIGUOUS_DECODE, PAGED_DECODE
from kernels.attention.prefill_cases import PAGED_PREFILL
from kernels.attention.quantised_cases import QUANTISED_DECODE, QUANTISED_DECODE_BF16
from kernels.case import Kernel
from kernels.gemm.dense_cases import MATMUL, MATMUL_LIBRARY
from kernels.gemm.fp8_cases import MATMUL_FP8
from kernels.gemm.weight_only_cases import MATMUL_INT4, MATMUL_INT8
from kernels.kv.cases import QUANTISE_KV, WRITE_KV
from kernels.norm.layer_norm import LAYER_NORM, LAYER_NORM_HALF
from kernels.norm.rms_norm import RMS_NORM, RMS_NORM_HALF
from kernels.probes.kernels import PROBE_KERNELS
from kernels.rotary import QKV_ROTARY
from kernels.softmax_cases import SOFTMAX, SOFTMAX_HALF

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        MATMUL,
        MATMUL_FP8,
        MATMUL_INT8,
        MATMUL_INT4,
        MATMUL_LIBRARY,
        RMS_NORM,
        RMS_NORM_HALF,
        LAYER_NORM,
        LAYER_NORM_HALF,
        SOFTMAX,
        SOFTMAX_HALF,
        QKV_ROTARY,
        SILU_MUL,
        PAGED_DECODE,
        CONTIGUOUS_DECODE,
        PAGED_PREFILL,
        QUANTISED_DECODE,
        QUANTISED_DECODE_BF16,
        WRITE_KV,
        QUANTISE_KV,
        *PROBE_KERNELS,
    )
}
"""Every kernel by name."""
