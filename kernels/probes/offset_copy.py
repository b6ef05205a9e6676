"""A copy whose buffers start off their alignment.

Axes: `offset_bytes` of both buffers from a 128-byte line; `bytes` copied. Offsets that aren't a
multiple of 16 also make the compiler move narrower words, as they do in any kernel.
"""

import torch
import triton
import triton.language as tl

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.checks import check
from kernels.device import DeviceFacts
from kernels.probes.probe import Probe, ProbeError, crossed, sizes_of
from kernels.timing import L2State, Timer, Timing

OFFSETS = (0, 64, 4, 16, 32, 96, 128)
_BLOCK = 2048
_NUM_WARPS = 4


@triton.jit
def _copy(source, target, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(target + at, tl.load(source + at, mask=inside), mask=inside)


def offset_copy(source: torch.Tensor, target: torch.Tensor) -> None:
    """Copy `source` to `target`, float32, of one length; each may start anywhere."""
    check(
        source.shape == target.shape,
        f"source has {source.numel()} elements, target {target.numel()}; they must be equal",
    )
    if source.numel():
        grid = (triton.cdiv(source.numel(), _BLOCK),)
        _copy[grid](source, target, source.numel(), _BLOCK, num_warps=_NUM_WARPS)


def _buffers(count: int, offset_bytes: int, device: torch.device) -> tuple[torch.Tensor, ...]:
    check(offset_bytes % 4 == 0, f"offset_bytes is {offset_bytes}; a multiple of 4 is needed")
    skip = offset_bytes // 4
    # One more word on either side, which the copy must leave alone.
    return tuple(torch.zeros(count + skip + 1, device=device) for _ in range(2))


def _measure(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    offset_bytes, num_bytes = sizes_of(shape, OFFSET_COPY.axes, bytes=4)
    count, skip = num_bytes // 4, offset_bytes // 4
    source, target = _buffers(count, offset_bytes, device)
    source.uniform_()
    timing = timer.time(lambda: offset_copy(source[skip:-1], target[skip:-1]), l2=L2State.WARM)
    beside = float(target[-1]) + float(target[:skip].sum())
    if beside or not torch.equal(source[skip:-1], target[skip:-1]):
        raise ProbeError(f"offset_copy: {num_bytes} B at offset {offset_bytes} are copied wrongly")
    return timing


def _sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    large = min(2**30, facts.memory_bytes // 8)
    sizes = [{"bytes": large}, {"bytes": facts.l2_bytes // 8}]
    return crossed(sizes, offset_bytes=OFFSETS)


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    elements, skip = shape["elements"], shape["offset_bytes"] // 4
    random = torch.Generator(device).manual_seed(seed)
    source = torch.rand(elements + skip, generator=random, device=device)[skip:]
    target = poisoned((elements + skip,), torch.float32, device)[skip:]
    return Case(
        launch=lambda: offset_copy(source, target),
        outputs=(target,),
        oracle=lambda: (source.double(),),
        tolerance=0.0,
        moved_bytes=2.0 * source.nbytes,
        flops=0.0,
    )


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    return tuple(
        CompileSpec(
            label=label,
            function=_copy,
            signature={"source": "*fp32", "target": "*fp32", "count": "i32"},
            constexprs={"BLOCK": _BLOCK},
            aligned=aligned,
            num_warps=_NUM_WARPS,
        )
        for label, aligned in (
            ("16-byte words", frozenset({"source", "target", "count"})),
            ("4-byte words", frozenset({"count"})),
        )
    )


OFFSET_COPY_KERNEL = Kernel(
    name="probe_offset_copy",
    make_case=_make_case,
    shapes=(
        {"elements": 1, "offset_bytes": 0},
        {"elements": 2049, "offset_bytes": 4},
        {"elements": 4096, "offset_bytes": 64},
    ),
    dtypes=("float32",),
    interpreted=("float32",),
    compile_specs=_compile_specs,
    sources=(_copy,),
)

OFFSET_COPY = Probe(
    name="offset_copy",
    axes=("offset_bytes", "bytes"),
    sweep=_sweep,
    small=({"offset_bytes": 0, "bytes": 10_000}, {"offset_bytes": 36, "bytes": 10_000}),
    measure=_measure,
    what="one copy of `bytes`",
    box_s=15.0,
)
