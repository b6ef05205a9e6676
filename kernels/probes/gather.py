"""All SMs read blocks at random places: what small blocks and translation cost of the bandwidth.

Axes: `block_bytes` of each block, a multiple of 4 KiB; `footprint_bytes` that blocks lie in.
"""

import torch
import triton
import triton.language as tl

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.checks import check
from kernels.device import DeviceFacts, device_facts
from kernels.probes.probe import Probe, crossed, each_of, ends_first, must_agree, sizes_of
from kernels.timing import L2State, Timer, Timing

_CHUNK = 1024
_CHUNK_BYTES = 4 * _CHUNK
_PROGRAMS_PER_SM = 16
_NUM_WARPS = 4
_LAUNCH_BYTES = 2**30
"""Read by one launch: many times the L2, which then hardly ever has a block."""
_CPU_VISITS = 6
_RESERVE_BYTES = 8 * 2**30
_CHECKED_VISITS = 64


@triton.jit
def _gather(source, blocks, sums, visits, block_chunks, CHUNK: tl.constexpr):
    program, programs = tl.program_id(0), tl.num_programs(0)
    at = tl.arange(0, CHUNK)
    for visit in range(program, visits, programs):
        block = tl.load(blocks + visit).to(tl.int64)
        total = tl.zeros((CHUNK,), tl.float32)
        for chunk in range(block_chunks):
            total += tl.load(source + (block * block_chunks + chunk) * CHUNK + at)
        tl.store(sums + visit, tl.sum(total, axis=0))


def gather(
    source: torch.Tensor, blocks: torch.Tensor, sums: torch.Tensor, block_bytes: int, programs: int
) -> None:
    """Sum each of the named blocks.

    Args:
        source: float32, whole blocks one after the other.
        blocks: int32 [visits]: numbers of blocks.
        sums: float32 [visits]: receives the sum of each.
        block_bytes: of a block.
        programs: among which visits are dealt.

    Raises:
        KernelInputError: a block that is no multiple of 4 KiB.
    """
    check(
        block_bytes > 0 and block_bytes % _CHUNK_BYTES == 0,
        f"block_bytes is {block_bytes}; a multiple of {_CHUNK_BYTES} is needed",
    )
    chunks, visits = block_bytes // _CHUNK_BYTES, blocks.numel()
    if visits:
        _gather[(programs,)](source, blocks, sums, visits, chunks, _CHUNK, num_warps=_NUM_WARPS)


def _measure(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    block_bytes, footprint = sizes_of(shape, GATHER.axes, block_bytes=_CHUNK_BYTES)
    blocks_there = footprint // block_bytes
    check(blocks_there > 0, f"footprint_bytes is {footprint}; one block is needed")
    on_gpu = device.type == "cuda"
    visits = max(1, _LAUNCH_BYTES // block_bytes) if on_gpu else _CPU_VISITS
    source = torch.empty(blocks_there * block_bytes // 4, device=device).uniform_()
    blocks = torch.randint(0, blocks_there, (visits,), dtype=torch.int32, device=device)
    sums = torch.empty(visits, device=device)
    programs = max(1, min(visits, _PROGRAMS_PER_SM * device_facts(device).num_sms))
    timing = timer.time(
        lambda: gather(source, blocks, sums, block_bytes, programs), l2=L2State.COLD
    )
    few = slice(0, _CHECKED_VISITS)
    want = source.view(blocks_there, -1)[blocks[few].long()].double().sum(-1)
    must_agree("gather", sums[few], want, 1e-5)
    return each_of(timing, visits)


def _sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    room = facts.memory_bytes - min(_RESERVE_BYTES, facts.memory_bytes // 2)
    sizes = [size for size in _footprints(room) if size > 2 * facts.l2_bytes]
    blocks = [2**12, 2**13, 2**14, 2**16, 2**18, 2**20]
    found = [
        shape
        for footprint in ends_first(sizes)
        for shape in crossed([{"footprint_bytes": footprint}], block_bytes=ends_first(blocks))
    ]
    return tuple(found)


def _footprints(room: int) -> list[int]:
    """A gigabyte and its doublings, halfway between the last ones, and the largest that fits."""
    whole = [2**power for power in range(24, 48) if 2**power <= room and power >= 30]
    whole = whole or [room // 2]
    large = {size * 3 // 2 for size in whole[-2:]}
    return sorted(size for size in {*whole, *large, room // 2**20 * 2**20} if size <= room)


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    block_bytes, there, visits = shape["block_bytes"], shape["blocks"], shape["visits"]
    random = torch.Generator(device).manual_seed(seed)
    source = torch.rand(there * block_bytes // 4, generator=random, device=device)
    blocks = torch.randint(0, there, (visits,), generator=random, dtype=torch.int32, device=device)
    sums = poisoned((visits,), torch.float32, device)
    return Case(
        launch=lambda: gather(source, blocks, sums, block_bytes, shape["programs"]),
        outputs=(sums,),
        oracle=lambda: (source.view(there, -1)[blocks.long()].double().sum(-1),),
        tolerance=1e-5,
        moved_bytes=float(visits * block_bytes),
        flops=float(visits * block_bytes // 4),
    )


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    return (
        CompileSpec(
            label="blocks",
            function=_gather,
            signature={
                "source": "*fp32",
                "blocks": "*i32",
                "sums": "*fp32",
                "visits": "i32",
                "block_chunks": "i32",
            },
            constexprs={"CHUNK": _CHUNK},
            aligned=frozenset({"source", "blocks", "sums"}),
            num_warps=_NUM_WARPS,
        ),
    )


GATHER_KERNEL = Kernel(
    name="probe_gather",
    make_case=_make_case,
    shapes=(
        {"block_bytes": 4096, "blocks": 1, "visits": 1, "programs": 1},
        {"block_bytes": 4096, "blocks": 5, "visits": 7, "programs": 3},
        {"block_bytes": 16384, "blocks": 3, "visits": 4, "programs": 8},
    ),
    dtypes=("float32",),
    interpreted=("float32",),
    compile_specs=_compile_specs,
    sources=(_gather,),
)

GATHER = Probe(
    name="gather",
    axes=("block_bytes", "footprint_bytes"),
    sweep=_sweep,
    small=({"block_bytes": 8192, "footprint_bytes": 2**17},),
    measure=_measure,
    what="one block, all SMs reading blocks side by side",
    box_s=60.0,
)
