"""One warp follows a chain of pointers: the latency of what the footprint fits into.

Axes: `footprint_bytes` that the chain is spread over; `stride_bytes` between its nodes; `random`
0: nodes in the order of their addresses, one at the start of each stride; 1: in random order, each
at a random 128-byte line of its stride. With a stride of one page and random order the few lines
stay in the L2, so that what grows with the footprint is translation alone.
"""

import torch
import triton
import triton.language as tl

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.checks import check
from kernels.device import DeviceFacts
from kernels.probes.probe import Probe, ProbeError, doublings, each_of, ends_first, sizes_of
from kernels.timing import L2State, Timer, Timing

LINE_BYTES, PAGE_BYTES = 128, 2 * 2**20
_WORD_BYTES = 8
_STEPS, _CPU_STEPS = 4096, 16
"""Loads of one launch: long enough for a launch to be lost in, short enough for a time box."""
_WARM_NODES = 2**20
"""A chain of up to so many nodes is walked whole before it is timed."""
_RESERVE_BYTES = 8 * 2**30


@triton.jit
def _chase(chain, start, end, steps):
    at = tl.load(start)
    for _ in range(steps):
        # Past the L1, which would answer for what the chain asks of the L2.
        at = tl.load(chain + at, cache_modifier=".cg")
    tl.store(end, at)


def chase(chain: torch.Tensor, start: torch.Tensor, end: torch.Tensor, steps: int) -> None:
    """Follow `steps` pointers, one after the other.

    Args:
        chain: int64; where a node is, the index of the next.
        start: int64 [1]: index of the first node.
        end: int64 [1]: receives the index of the last; may be `start`, so that the next launch
            walks on.
    """
    check(steps >= 0, f"steps is {steps}; at least 0 is needed")
    _chase[(1,)](chain, start, end, steps, num_warps=1)


def make_chain(
    footprint_bytes: int, stride_bytes: int, shuffled: bool, device: torch.device, seed: int = 0
) -> tuple[torch.Tensor, int]:
    """Return (chain, index of a node): one ring over all nodes of the footprint.

    Raises:
        KernelInputError: fewer than two nodes, or a stride that is no multiple of a line.
    """
    check(
        stride_bytes >= LINE_BYTES and stride_bytes % LINE_BYTES == 0,
        f"stride_bytes is {stride_bytes}; a multiple of {LINE_BYTES} is needed",
    )
    nodes = footprint_bytes // stride_bytes
    check(nodes >= 2, f"footprint_bytes is {footprint_bytes}; two strides of it are needed")
    chain = torch.empty(nodes * stride_bytes // _WORD_BYTES, dtype=torch.int64, device=device)
    index = torch.arange(nodes, device=device) * (stride_bytes // _WORD_BYTES)
    if shuffled:
        random = torch.Generator(device).manual_seed(seed)
        lines = stride_bytes // LINE_BYTES
        line = torch.randint(0, lines, (nodes,), generator=random, device=device)
        index = index + line * (LINE_BYTES // _WORD_BYTES)
        index = index[torch.randperm(nodes, generator=random, device=device)]
    chain[index] = index.roll(-1)
    return chain, int(index[0])


def _measure(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    footprint, stride, shuffled = sizes_of(shape, CHASE.axes)
    chain, first = make_chain(footprint, stride, bool(shuffled), device)
    position = torch.tensor([first], device=device)
    nodes = footprint // stride
    on_gpu = device.type == "cuda"
    steps = _STEPS if on_gpu else _CPU_STEPS
    if on_gpu and nodes <= _WARM_NODES:
        chase(chain, position, position, nodes)
        # A ring: a walk over all of it ends where it began.
        if int(position) != first:
            raise ProbeError(f"chase: {nodes} loads over {nodes} nodes ended elsewhere")
    timing = timer.time(lambda: chase(chain, position, position, steps), l2=L2State.WARM)
    if not 0 <= int(chain[int(position)]) < len(chain):
        raise ProbeError("chase: the walk left its chain")
    return each_of(timing, steps)


def _sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    room = facts.memory_bytes - min(_RESERVE_BYTES, facts.memory_bytes // 2)
    shares = (0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0)
    around = [round(share * facts.l2_bytes / LINE_BYTES) * LINE_BYTES for share in shares]
    inner = doublings(2**15, facts.l2_bytes // 4)
    outer = doublings(4 * facts.l2_bytes, min(2**33, room))
    lines: list[Shape] = [
        {"footprint_bytes": size, "stride_bytes": LINE_BYTES, "random": 0}
        for size in sorted({*inner, *around, *outer})
    ]
    # Steps may lie anywhere: two points an octave, and the largest that fits.
    whole = doublings(4 * PAGE_BYTES, room)
    sizes = {*whole, *(size * 3 // 2 for size in whole), room // PAGE_BYTES * PAGE_BYTES}
    pages: list[Shape] = [
        {"footprint_bytes": size, "stride_bytes": PAGE_BYTES, "random": 1}
        for size in sorted(sizes)
        if size <= room
    ]
    ordered = [ends_first(lines), ends_first(pages)]
    longest = max(len(points) for points in ordered)
    return tuple(points[at] for at in range(longest) for points in ordered if at < len(points))


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    steps = shape["steps"]
    chain, first = make_chain(
        shape["footprint_bytes"], shape["stride_bytes"], bool(shape["random"]), device, seed
    )
    start = torch.tensor([first], device=device)
    end = poisoned((1,), torch.int64, device)

    def oracle() -> tuple[torch.Tensor, ...]:
        at, followed = first, chain.tolist()
        for _ in range(steps):
            at = followed[at]
        return (torch.tensor([at], dtype=torch.float64),)

    return Case(
        launch=lambda: chase(chain, start, end, steps),
        outputs=(end,),
        oracle=oracle,
        tolerance=0.0,
        moved_bytes=32.0 * max(steps, 1),
        flops=0.0,
    )


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    return (
        CompileSpec(
            label="one warp",
            function=_chase,
            signature={"chain": "*i64", "start": "*i64", "end": "*i64", "steps": "i32"},
            constexprs={},
            aligned=frozenset({"chain", "start", "end", "steps"}),
            num_warps=1,
        ),
    )


CHASE_KERNEL = Kernel(
    name="probe_chase",
    make_case=_make_case,
    shapes=(
        {"footprint_bytes": 256, "stride_bytes": 128, "random": 0, "steps": 0},
        {"footprint_bytes": 4096, "stride_bytes": 128, "random": 0, "steps": 33},
        {"footprint_bytes": 65536, "stride_bytes": 4096, "random": 1, "steps": 21},
    ),
    dtypes=("int64",),
    interpreted=("int64",),
    compile_specs=_compile_specs,
    sources=(_chase,),
)

CHASE = Probe(
    name="chase",
    axes=("footprint_bytes", "stride_bytes", "random"),
    sweep=_sweep,
    small=(
        {"footprint_bytes": 4096, "stride_bytes": 128, "random": 0},
        {"footprint_bytes": 2**20, "stride_bytes": 2**16, "random": 1},
    ),
    measure=_measure,
    what="one load",
    box_s=85.0,
)
