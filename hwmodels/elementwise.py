"""Memory-bound small kernels and sampling."""

from hwmodels.efficiency import SMALL_KERNEL_S
from hwmodels.ops import Bound, Elementwise, OpCost, Sampling, Source
from hwmodels.spec import GpuSpec

# Greedy sampling: logits to FP32 (read 2, write 4), arg-max over them (read 4). Random sampling
# with top-k or top-p sorts and costs more; nobody published by how much.
_SAMPLING_BYTES_PER_LOGIT = 10.0
_SAMPLING_KERNELS = 4


def elementwise_cost(op: Elementwise, stream: float, gpu: GpuSpec) -> OpCost:
    """Return the cost of small kernels: a fixed time each, and their bytes.

    `stream` is the share of HBM bandwidth plain streaming reaches.
    """
    bytes_s = op.num_bytes / (stream * gpu.hbm_bytes_per_s)
    fixed_s = op.kernels * SMALL_KERNEL_S
    bound = Bound.HBM if bytes_s > fixed_s else Bound.LAUNCH
    seconds = (fixed_s + bytes_s) * op.repeat
    return OpCost(seconds, bound, Source.PHYSICS, op.kernels * op.repeat)


def sampling_cost(op: Sampling, stream: float, gpu: GpuSpec) -> OpCost:
    """Return the cost of greedy sampling from `seqs` rows of logits."""
    if op.seqs <= 0:
        return OpCost(0.0, Bound.HBM, Source.PHYSICS, 0)
    return elementwise_cost(Elementwise(sampling_bytes(op), _SAMPLING_KERNELS), stream, gpu)


def sampling_bytes(op: Sampling) -> float:
    """Return what greedy sampling moves."""
    return op.seqs * op.vocab * _SAMPLING_BYTES_PER_LOGIT
