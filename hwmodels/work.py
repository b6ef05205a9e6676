"""What an operation asks of a GPU at least: floating-point operations, and bytes of memory."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hwmodels.dtypes import KV_BYTES, WEIGHT_BYTES
from hwmodels.elementwise import sampling_bytes
from hwmodels.gemm import quantised_compute
from hwmodels.moe import expected_active_experts
from hwmodels.ops import (
    Collective,
    DecodeAttention,
    Elementwise,
    ExpertGemm,
    Gemm,
    Op,
    PrefillAttention,
    Sampling,
)
from hwmodels.spec import GpuSpec

_ACTIVATION_BYTES = 2.0


@dataclass(frozen=True, slots=True)
class Work:
    """What all repeats of an operation ask for.

    Attributes:
        flops: multiplications and additions; small kernels count none.
        num_bytes: each operand read once and each result written once.
    """

    flops: float
    num_bytes: float

    @property
    def intensity(self) -> float:
        """FLOP by byte; 0 for no bytes."""
        return self.flops / self.num_bytes if self.num_bytes else 0.0

    def __add__(self, other: "Work") -> "Work":
        return Work(self.flops + other.flops, self.num_bytes + other.num_bytes)


def work_of(op: Op, gpu: GpuSpec) -> Work:
    """Return what an operation asks of a GPU at least.

    A collective moves bytes over links, which is no work of this kind.
    """
    return _WORK[type(op)](op, gpu)


def compute_path(op: Op, gpu: GpuSpec) -> str:
    """Return the tensor-core path an operation takes: its dtype, or bf16 where there is none."""
    if isinstance(op, Gemm | ExpertGemm) and quantised_compute(op.compute_dtype, gpu):
        return op.compute_dtype
    return "bf16"


def _gemm(op: Gemm, gpu: GpuSpec) -> Work:
    inputs = op.m * op.k * _input_bytes(op, gpu)
    weights = op.n * op.k * WEIGHT_BYTES[op.weight_dtype]
    results = op.m * op.n * _ACTIVATION_BYTES
    return Work(2.0 * op.m * op.n * op.k * op.repeat, (inputs + weights + results) * op.repeat)


def _experts(op: ExpertGemm, gpu: GpuSpec) -> Work:
    routed = op.tokens * op.experts_per_token * op.local_experts / op.num_experts
    active = expected_active_experts(
        op.tokens, op.num_experts, op.experts_per_token, op.local_experts
    )
    each = op.hidden * op.gated_n + op.intermediate * op.hidden
    inputs = routed * (op.hidden + op.intermediate) * _input_bytes(op, gpu)
    results = routed * (op.gated_n + op.hidden) * _ACTIVATION_BYTES
    weights = active * each * WEIGHT_BYTES[op.weight_dtype]
    return Work(2.0 * routed * each * op.repeat, (inputs + weights + results) * op.repeat)


def _input_bytes(op: Gemm | ExpertGemm, gpu: GpuSpec) -> float:
    return 1.0 if quantised_compute(op.compute_dtype, gpu) else _ACTIVATION_BYTES


def _prefill(op: PrefillAttention, gpu: GpuSpec) -> Work:
    del gpu
    dims = op.qk_dim + op.v_dim
    seen = op.kv_tokens if op.window is None else min(op.kv_tokens, op.query_tokens + op.window)
    flops = 2.0 * dims * op.heads * _pairs(op)
    queries = op.query_tokens * op.heads * dims * _ACTIVATION_BYTES
    kv = seen * op.kv_heads * dims * KV_BYTES[op.kv_dtype]
    return Work(flops * op.repeat, (queries + kv) * op.repeat)


def _pairs(op: PrefillAttention) -> float:
    """(query, key) pairs that are not masked: each query sees what is before it, or a window."""
    first = op.kv_tokens - op.query_tokens + 1
    if op.window is None or op.window >= op.kv_tokens:
        return op.query_tokens * (first + op.kv_tokens) / 2
    growing = max(0, min(op.query_tokens, op.window - first + 1))
    rising = growing * (2 * first + growing - 1) / 2
    return rising + (op.query_tokens - growing) * op.window


def _decode(op: DecodeAttention, gpu: GpuSpec) -> Work:
    del gpu
    dims = op.qk_dim + op.v_dim
    queries = op.seqs * op.heads * dims * _ACTIVATION_BYTES
    num_bytes = op.kv_tokens * op.kv_bytes_per_token + queries
    return Work(2.0 * op.kv_tokens * op.heads * dims * op.repeat, num_bytes * op.repeat)


def _elementwise(op: Elementwise, gpu: GpuSpec) -> Work:
    del gpu
    return Work(0.0, op.num_bytes * op.repeat)


def _sampling(op: Sampling, gpu: GpuSpec) -> Work:
    del gpu
    return Work(0.0, sampling_bytes(op))


def _collective(op: Collective, gpu: GpuSpec) -> Work:
    del op, gpu
    return Work(0.0, 0.0)


_WORK: dict[type[Op], Callable[[Any, GpuSpec], Work]] = {
    Gemm: _gemm,
    ExpertGemm: _experts,
    PrefillAttention: _prefill,
    DecodeAttention: _decode,
    Elementwise: _elementwise,
    Collective: _collective,
    Sampling: _sampling,
}
