"""A KV block is used again while another stream still copies it: how long the window is.

Axes: `bytes` of the block; `event` 1: whoever uses it again waits for the copy's event, 0: it
doesn't. Without the event, seconds run from the reuse's begin to the copy's end: the window in
which the copy sees memory that is no longer its own. With it they run from the copy's end to the
reuse's end: what the fence and the reuse take. A copy that sees foreign memory in spite of the
event, or never sees any without it, is an error.
"""

from collections.abc import Callable

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.checks import check
from kernels.device import DeviceFacts
from kernels.probes.probe import Probe, ProbeError, crossed, sizes_of
from kernels.timing import MIN_REPETITIONS, L2State, Timer, Timing

_BLOCK = 1024
_NUM_WARPS = 4
_WAITS = 500
"""Dependent loads before a program of the copy reads: about 0.1 ms, as a slow link would take."""
_FOREIGN = -1
_HOLD_CYCLES = 200_000


@triton.jit
def _late_copy(source, target, zero, count, first, waits, BLOCK: tl.constexpr):
    at = (tl.program_id(0) + first).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    late = tl.load(zero)
    for _ in range(waits):
        late = tl.load(zero + late, volatile=True)
    tl.store(target + at, tl.load(source + at + late, mask=inside), mask=inside)


def late_copy(
    source: torch.Tensor,
    target: torch.Tensor,
    zero: torch.Tensor,
    *,
    waits: int = 0,
    chunks: range | None = None,
) -> None:
    """Copy int32 words, but only after a while.

    Args:
        source, target: int32 [count].
        zero: int32 [1] that holds 0.
        waits: dependent loads of `zero` before the copy.
        chunks: those of 1024 words that are copied, one after the other; None: all.
    """
    check(source.shape == target.shape, "source and target must be of one length")
    chunks = range(triton.cdiv(source.numel(), _BLOCK)) if chunks is None else chunks
    if len(chunks):
        args = (source, target, zero, source.numel(), chunks.start, waits, _BLOCK)
        _late_copy[(len(chunks),)](*args, num_warps=_NUM_WARPS)


def _measure(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    num_bytes, event = sizes_of(shape, LIFETIME_RACE.axes, bytes=8)
    words = num_bytes // 4
    block = torch.empty(words, dtype=torch.int32, device=device)
    copied, zero = torch.empty_like(block), torch.zeros(1, dtype=torch.int32, device=device)
    own = torch.arange(words, dtype=torch.int32, device=device)
    if device.type == "cuda":
        seconds, foreign = _on_streams(block, copied, zero, own, fenced=bool(event))
        timing = Timing(seconds, L2State.WARM)
    else:
        turn = _fenced_turn if event else _torn_turn
        timing = timer.time(lambda: turn(block, copied, zero, own), l2=L2State.WARM)
        foreign = foreign_words(copied, own)
    judge(foreign, fenced=bool(event))
    return timing


def foreign_words(copied: torch.Tensor, own: torch.Tensor) -> int:
    """Return how many words of a copy aren't the block's own."""
    return int((copied != own).sum())


def judge(foreign: int, *, fenced: bool) -> None:
    """Hold the number of foreign words against what there must be.

    Raises:
        ProbeError: foreign words in spite of an event, or none without one.
    """
    if fenced and foreign:
        raise ProbeError(f"lifetime_race: {foreign} foreign words were copied in spite of an event")
    if not fenced and not foreign:
        raise ProbeError("lifetime_race: no foreign word was copied though there was no event")


def _on_streams(
    block: torch.Tensor,
    copied: torch.Tensor,
    zero: torch.Tensor,
    own: torch.Tensor,
    *,
    fenced: bool,
) -> tuple[NDArray[np.float64], int]:
    """Return (seconds of each turn, foreign words of all)."""
    copying, reusing = torch.cuda.Stream(block.device), torch.cuda.Stream(block.device)
    found, foreign = [], 0
    for turn in range(MIN_REPETITIONS + 1):
        block.copy_(own)
        torch.cuda.synchronize(block.device)
        copy_end, reuse_start, reuse_end = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        with torch.cuda.stream(copying):
            torch.cuda._sleep(_HOLD_CYCLES)  # both streams are filled before either begins
            held = torch.cuda.Event()
            held.record()
            late_copy(block, copied, zero, waits=_WAITS)
            copy_end.record()
        with torch.cuda.stream(reusing):
            reusing.wait_event(copy_end if fenced else held)
            reuse_start.record()
            block.fill_(_FOREIGN)
            reuse_end.record()
        torch.cuda.synchronize(block.device)
        if turn:  # the first is a warm-up
            foreign += foreign_words(copied, own)
            ends = (copy_end, reuse_end) if fenced else (reuse_start, copy_end)
            found.append(ends[0].elapsed_time(ends[1]) / 1e3)
    return np.array(found), foreign


Turn = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], None]


def _fenced_turn(
    block: torch.Tensor, copied: torch.Tensor, zero: torch.Tensor, own: torch.Tensor
) -> None:
    """What a fence enforces, in the order it enforces it: for devices without streams."""
    block.copy_(own)
    late_copy(block, copied, zero)
    block.fill_(_FOREIGN)


def _torn_turn(
    block: torch.Tensor, copied: torch.Tensor, zero: torch.Tensor, own: torch.Tensor
) -> None:
    """One order that nothing forbids without a fence: the block is reused halfway."""
    chunks = range(triton.cdiv(block.numel(), _BLOCK))
    half = len(chunks) // 2
    block.copy_(own)
    late_copy(block, copied, zero, chunks=chunks[:half])
    block.fill_(_FOREIGN)
    late_copy(block, copied, zero, chunks=chunks[half:])


def _sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    sizes = [{"bytes": size} for size in (2**16, 2**21, 2**18)]
    return crossed(sizes, event=[0, 1])


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    words, waits = shape["words"], shape["waits"]
    random = torch.Generator(device).manual_seed(seed)
    source = torch.randint(
        -(2**20), 2**20, (words,), generator=random, dtype=torch.int32, device=device
    )
    target = poisoned((words,), torch.int32, device)
    zero = torch.zeros(1, dtype=torch.int32, device=device)
    return Case(
        launch=lambda: late_copy(source, target, zero, waits=waits),
        outputs=(target,),
        oracle=lambda: (source.double(),),
        tolerance=0.0,
        moved_bytes=2.0 * source.nbytes,
        flops=0.0,
    )


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    pointers = {"source": "*i32", "target": "*i32", "zero": "*i32"}
    return (
        CompileSpec(
            label="late",
            function=_late_copy,
            signature={**pointers, "count": "i32", "first": "i32", "waits": "i32"},
            constexprs={"BLOCK": _BLOCK},
            aligned=frozenset({*pointers, "count", "first"}),
            num_warps=_NUM_WARPS,
        ),
    )


LATE_COPY_KERNEL = Kernel(
    name="probe_late_copy",
    make_case=_make_case,
    shapes=({"words": 1, "waits": 0}, {"words": 1025, "waits": 3}, {"words": 4096, "waits": 1}),
    dtypes=("int32",),
    interpreted=("int32",),
    compile_specs=_compile_specs,
    sources=(_late_copy,),
)

LIFETIME_RACE = Probe(
    name="lifetime_race",
    axes=("bytes", "event"),
    sweep=_sweep,
    small=crossed([{"bytes": 16384}], event=[0, 1]),
    measure=_measure,
    what="the race window, or with an event the fence and the reuse",
    box_s=10.0,
)
