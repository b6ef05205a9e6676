"""One warp reads shared memory at a stride: what bank conflicts cost.

Axis: `stride_words` between the 4-byte words that neighbouring lanes read; 32 banks serve a word
each at a time, so that gcd(stride, 32) lanes want the same bank. Triton lays out shared memory
itself and swizzles conflicts away: so the words are declared and read in PTX.
"""

import math

import torch
import triton
import triton.language as tl

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.checks import check
from kernels.device import DeviceFacts
from kernels.probes.probe import Probe, ProbeError, each_of, ends_first, sizes_of
from kernels.timing import L2State, Timer, Timing

LANES = 32
MOST_STRIDE = 33
_STEPS = 4096
_UNROLLED = 4

# Each word holds its own address: a lane that loads it again and again stays where it is, each
# load waits for the one before, and the place where it ends tells whether the stride was right.
_WALK: tl.constexpr = tl.constexpr(
    """{
    .shared .align 16 .b32 words[1056];
    .reg .pred more;
    .reg .b32 base, at, left, word;
    mov.u32 base, words;
    mov.u32 word, $1;
fill:
    shl.b32 at, word, 2;
    add.u32 at, at, base;
    st.shared.u32 [at], at;
    add.u32 word, word, 32;
    setp.lt.u32 more, word, 1056;
    @more bra fill;
    bar.warp.sync 0xffffffff;
    mul.lo.u32 at, $1, $2;
    shl.b32 at, at, 2;
    add.u32 at, at, base;
    mov.u32 left, $3;
walk:
    ld.volatile.shared.u32 at, [at];
    ld.volatile.shared.u32 at, [at];
    ld.volatile.shared.u32 at, [at];
    ld.volatile.shared.u32 at, [at];
    sub.u32 left, left, 4;
    setp.ne.u32 more, left, 0;
    @more bra walk;
    sub.u32 at, at, base;
    shr.u32 $0, at, 2;
}"""
)


@triton.jit
def _shared_walk(out, stride, steps, LANES: tl.constexpr):
    lane = tl.arange(0, LANES)
    word = tl.inline_asm_elementwise(
        _WALK, "=r,r,r,r", [lane, stride, steps], dtype=tl.int32, is_pure=False, pack=1
    )
    tl.store(out + lane, word)


def shared_walk(out: torch.Tensor, stride_words: int, steps: int) -> None:
    """Load word lane · stride of shared memory `steps` times, each load after the one before.

    Args:
        out: int32 [32] on a GPU: receives the word that each lane read.
        stride_words: 0 (one word for all) to 33.
        steps: a positive multiple of 4.

    Raises:
        KernelInputError: a stride or a number of steps outside that.
    """
    check(
        0 <= stride_words <= MOST_STRIDE,
        f"stride_words is {stride_words}; 0 to {MOST_STRIDE} is needed",
    )
    check(
        steps > 0 and steps % _UNROLLED == 0,
        f"steps is {steps}; a positive multiple of {_UNROLLED} is needed",
    )
    _shared_walk[(1,)](out, stride_words, steps, LANES, num_warps=1)


def _expected(stride_words: int) -> torch.Tensor:
    return torch.arange(LANES) * stride_words


def _measure(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    (stride,) = sizes_of(shape, SHARED_MEMORY.axes)
    if device.type != "cuda":
        raise ProbeError("shared_memory: needs a GPU; Triton's interpreter runs no PTX")
    out = torch.full((LANES,), -1, dtype=torch.int32, device=device)
    timing = timer.time(lambda: shared_walk(out, stride, _STEPS), l2=L2State.WARM)
    if not torch.equal(out.cpu().long(), _expected(stride)):
        raise ProbeError(f"shared_memory: stride {stride} read the words {out.tolist()}")
    return each_of(timing, _STEPS)


def _sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    by_degree = sorted(range(1, MOST_STRIDE + 1), key=lambda stride: math.gcd(stride, LANES))
    return tuple({"stride_words": stride} for stride in ends_first(by_degree))


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    out = poisoned((LANES,), torch.int32, device)
    return Case(
        launch=lambda: shared_walk(out, shape["stride_words"], shape["steps"]),
        outputs=(out,),
        oracle=lambda: (_expected(shape["stride_words"]).double(),),
        tolerance=0.0,
        moved_bytes=float(out.nbytes),
        flops=0.0,
    )


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    return (
        CompileSpec(
            label="one warp",
            function=_shared_walk,
            signature={"out": "*i32", "stride": "i32", "steps": "i32"},
            constexprs={"LANES": LANES},
            aligned=frozenset({"out", "steps"}),
            num_warps=1,
        ),
    )


SHARED_MEMORY_KERNEL = Kernel(
    name="probe_shared_memory",
    make_case=_make_case,
    shapes=tuple({"stride_words": stride, "steps": 8} for stride in (0, 1, 2, 17, 32, 33)),
    dtypes=("int32",),
    interpreted=(),
    compile_specs=_compile_specs,
    sources=(_shared_walk,),
)

SHARED_MEMORY = Probe(
    name="shared_memory",
    axes=("stride_words",),
    sweep=_sweep,
    small=({"stride_words": 1},),
    measure=_measure,
    what="one load of a warp",
    box_s=10.0,
    needs="gpu",
)
