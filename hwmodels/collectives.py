"""Collectives of one node: fitted lines, the engine's own all-reduce, and NCCL's prior.

All ranks are taken to arrive together: the spread of arrivals on real nodes isn't published.
"""

from hwmodels.collective_fits import (
    CUSTOM_ALL_REDUCE,
    CUSTOM_PIECE_BYTES,
    NCCL_LINES,
    SEND_RECV,
    Line,
)
from hwmodels.links import LINKS
from hwmodels.nccl_prior import nccl_prior_s
from hwmodels.ops import Bound, Collective, OpCost, Source
from hwmodels.spec import GpuSpec

MIB = 2**20
CUSTOM_RANKS = (2, 4, 6, 8)
CUSTOM_MAX_BYTES = 8 * MIB
# vLLM 0.33.0 with symmetric memory enabled, by compute capability and ranks; above them its
# multimem kernel takes over, which no public table prices.
SYMMETRIC_CUSTOM_MAX_BYTES: dict[tuple[int, int], dict[int, int]] = {
    (9, 0): {2: 64 * MIB, 4: 32 * MIB, 6: MIB // 2, 8: MIB // 4},
    (10, 0): {2: 2 * MIB, 4: 2 * MIB, 6: MIB, 8: MIB},
}
_SEND_LATENCY_PCIE_S = 20e-6  # unmeasured: two hops over the host


def custom_all_reduce_limit_bytes(gpu: GpuSpec, ranks: int, *, symmetric: bool = False) -> int:
    """Return the size from which vLLM's custom all-reduce hands over; 0: it never serves.

    It needs 2, 4, 6 or 8 ranks of one node, fully connected by NVLink.
    """
    if ranks not in CUSTOM_RANKS or not LINKS[gpu.node.link].fully_connected:
        return 0
    if symmetric:
        limits = SYMMETRIC_CUSTOM_MAX_BYTES.get(gpu.compute_capability, {})
        return min(limits.get(ranks, CUSTOM_MAX_BYTES), CUSTOM_MAX_BYTES)
    return CUSTOM_MAX_BYTES


def collective_cost(op: Collective, gpu: GpuSpec) -> OpCost:
    """Return the cost of a collective, all repeats; one rank costs nothing.

    The jump where the custom kernel hands over to NCCL is real (25 to 90 us on A100, two ranks)
    and kept.
    """
    if op.ranks <= 1 or op.num_bytes <= 0:
        return OpCost(0.0, Bound.LINK, Source.PHYSICS, 0)
    if op.kind == "send_recv":
        seconds, source = _send_recv(op.num_bytes, gpu)
    elif _custom_serves(op, gpu):
        seconds, source = _custom_all_reduce(op.num_bytes, op.ranks, gpu)
    else:
        seconds, source = _nccl(op, gpu)
    return OpCost(seconds * op.repeat, Bound.LINK, source, op.repeat)


def _custom_serves(op: Collective, gpu: GpuSpec) -> bool:
    return (
        op.kind == "all_reduce"
        and op.custom_allowed
        and op.num_bytes % 16 == 0
        and op.num_bytes < custom_all_reduce_limit_bytes(gpu, op.ranks)
    )


def _line_s(line: Line, num_bytes: float) -> float:
    return line[0] * 1e-6 + num_bytes / (line[1] * 1e9)


def _custom_all_reduce(num_bytes: float, ranks: int, gpu: GpuSpec) -> tuple[float, Source]:
    pieces = CUSTOM_ALL_REDUCE.get((gpu.name, ranks))
    index = 0 if num_bytes <= CUSTOM_PIECE_BYTES else 1
    if pieces:
        return _line_s(pieces[index], num_bytes), Source.PHYSICS
    # Six ranks lie between four and eight; other NVSwitch parts borrow H200's kernel.
    near = (4, 8) if ranks == 6 else (ranks,)
    name = gpu.name if (gpu.name, near[0]) in CUSTOM_ALL_REDUCE else "h200_sxm"
    times = [_line_s(CUSTOM_ALL_REDUCE[name, n][index], num_bytes) for n in near]
    return sum(times) / len(times), Source.EXTRAPOLATED


def _nccl(op: Collective, gpu: GpuSpec) -> tuple[float, Source]:
    lines = NCCL_LINES.get((gpu.name, op.kind, op.ranks))
    if lines:
        return min(_line_s(line, op.num_bytes) for line in lines), Source.PHYSICS
    link = LINKS[gpu.node.link]
    seconds = nccl_prior_s(op.kind, op.num_bytes, op.ranks, link, gpu.architecture)
    return seconds, Source.EXTRAPOLATED


def _send_recv(num_bytes: float, gpu: GpuSpec) -> tuple[float, Source]:
    line = SEND_RECV.get(gpu.name)
    if line:
        return _line_s(line, num_bytes), Source.PHYSICS
    link = LINKS[gpu.node.link]
    latency = SEND_RECV["h200_sxm"][0] * 1e-6 if link.kind == "nvlink" else _SEND_LATENCY_PCIE_S
    return latency + num_bytes / link.sustained_bytes_per_s, Source.EXTRAPOLATED
