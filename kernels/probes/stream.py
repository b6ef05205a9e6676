"""Streaming over memory by all SMs: `stream` (read, write, copy) and `l2_sweep` (warm, cold).

Axes: `bytes` of each buffer; `mode` 0 read, 1 write, 2 copy (which moves twice the bytes); `cold`
1 with the L2 flushed before each launch, 0 with it as the launch before left it.
"""

import torch
import triton
import triton.language as tl

from kernels.case import Case, CompileSpec, Kernel, Shape, poisoned
from kernels.device import DeviceFacts, device_facts
from kernels.errors import KernelInputError
from kernels.probes.probe import Probe, ProbeError, crossed, doublings, ends_first, sizes_of
from kernels.timing import L2State, Timer, Timing

READ, WRITE, COPY = 0, 1, 2
_CHUNK = 4096
_PROGRAMS_PER_SM = 8
_NUM_WARPS = 8
_PATTERN = 1023
"""A write leaves each element's index modulo 1024, so that a misplaced one is seen."""
_GRAPH_BYTES = 2**30
"""Beyond, single launches are timed: they are long, and the L2 holds nothing of them anyway."""
_RESERVE_BYTES = 8 * 2**30
_TOLERANCE = 1e-5


@triton.jit
def _stream(source, target, sums, count, MODE: tl.constexpr, CHUNK: tl.constexpr):
    program, programs = tl.program_id(0).to(tl.int64), tl.num_programs(0).to(tl.int64)
    at = tl.arange(0, CHUNK)
    total = tl.zeros((CHUNK,), tl.float32)
    for start in range(program * CHUNK, count, programs * CHUNK):
        place = start + at
        inside = place < count
        if MODE == 0:
            total += tl.load(source + place, mask=inside, other=0.0)
        elif MODE == 1:
            tl.store(target + place, (place & 1023).to(tl.float32), mask=inside)
        else:
            tl.store(target + place, tl.load(source + place, mask=inside), mask=inside)
    if MODE == 0:
        tl.store(sums + program, tl.sum(total, axis=0))


def stream(source: torch.Tensor, target: torch.Tensor, sums: torch.Tensor, mode: int) -> None:
    """Read, write or copy one buffer, each program its share of the chunks.

    Args:
        source: float32 [count]; read in modes 0 and 2.
        target: float32 [count]; written in modes 1 and 2.
        sums: float32 [programs]; mode 0 leaves each program's sum.
        mode: 0 read, 1 write, 2 copy.

    Raises:
        KernelInputError: another mode.
    """
    if mode not in (READ, WRITE, COPY):
        raise KernelInputError(f"mode is {mode}; 0 (read), 1 (write) or 2 (copy) is needed")
    count = target.numel() if mode == WRITE else source.numel()
    grid = (sums.numel(),)
    _stream[grid](source, target, sums, count, mode, _CHUNK, num_warps=_NUM_WARPS)


def programs_for(count: int, num_sms: int) -> int:
    """Return how many programs stream over `count` elements."""
    return max(1, min(triton.cdiv(count, _CHUNK), _PROGRAMS_PER_SM * num_sms))


def _measure(num_bytes: int, mode: int, state: L2State, device: torch.device, t: Timer) -> Timing:
    count = num_bytes // 4
    # Random bits: zeros draw less power, and so may run at a higher clock than data would.
    source = torch.empty(count if mode != WRITE else 1, device=device).uniform_()
    target = torch.empty(count if mode != READ else 1, device=device)
    sums = torch.empty(programs_for(count, device_facts(device).num_sms), device=device)
    timing = t.time(lambda: stream(source, target, sums, mode), l2=state)
    _check(source, target, sums, mode)
    return timing


def _check(source: torch.Tensor, target: torch.Tensor, sums: torch.Tensor, mode: int) -> None:
    if mode == READ:
        have, want = float(sums.double().sum()), float(source.sum(dtype=torch.float64))
        wrong = abs(have - want) > _TOLERANCE * want
    elif mode == COPY:
        wrong = not torch.equal(source, target)
    else:
        tail = torch.arange(max(0, len(target) - 2048), len(target), device=target.device)
        wrong = not torch.equal(target[-2048:], (tail & _PATTERN).float())
    if wrong:
        raise ProbeError(f"stream: mode {mode} over {4 * max(len(source), len(target))} B is wrong")


def _measure_stream(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    num_bytes, mode = sizes_of(shape, STREAM.axes, bytes=4)
    state = L2State.WARM if num_bytes <= _GRAPH_BYTES else L2State.COLD
    return _measure(num_bytes, mode, state, device, timer)


def _measure_l2(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    num_bytes, cold = sizes_of(shape, L2_SWEEP.axes, bytes=4)
    return _measure(num_bytes, READ, L2State.COLD if cold else L2State.WARM, device, timer)


def _stream_sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    room = facts.memory_bytes - min(_RESERVE_BYTES, facts.memory_bytes // 2)
    large = min(2**30, room // 4)
    ends: list[Shape] = [{"bytes": large, "mode": mode} for mode in (READ, COPY, WRITE)]
    sizes = [*doublings(2**20, min(16 * 2**30, room)), *_knee(facts)]
    reads = crossed([{"bytes": size} for size in ends_first(sorted(set(sizes)))], mode=[READ])
    others = crossed(
        [{"bytes": size} for size in (large // 4, min(4 * large, room // 2))], mode=[COPY, WRITE]
    )
    ordered = {tuple(shape.values()): shape for shape in (*ends, *reads, *others)}
    return tuple(ordered.values())


def _l2_sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    sizes = sorted({*doublings(2**18, 4 * facts.l2_bytes), *_knee(facts)})
    return crossed([{"bytes": size} for size in ends_first(sizes)], cold=[0, 1])


def _knee(facts: DeviceFacts) -> list[int]:
    """Footprints around the L2's size, in whole MiB where it has any."""
    shares = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.5)
    unit = 2**20 if facts.l2_bytes > 8 * 2**20 else 2**14
    return [max(1, round(share * facts.l2_bytes / unit)) * unit for share in shares]


def _make_case(shape: Shape, dtype: str, device: torch.device, seed: int) -> Case:
    elements, mode, programs = shape["elements"], shape["mode"], shape["programs"]
    random = torch.Generator(device).manual_seed(seed)
    source = torch.rand(elements, generator=random, device=device)
    target = poisoned((elements,), torch.float32, device)
    sums = poisoned((programs,), torch.float32, device)

    def oracle() -> tuple[torch.Tensor, ...]:
        if mode == COPY:
            return (source.double(),)
        if mode == WRITE:
            return ((torch.arange(elements) & _PATTERN).double(),)
        total = torch.zeros(programs, dtype=torch.float64)
        for number, chunk in enumerate(source.cpu().double().split(_CHUNK)):
            total[number % programs] += chunk.sum()
        return (total,)

    return Case(
        launch=lambda: stream(source, target, sums, mode),
        outputs=(sums if mode == READ else target,),
        oracle=oracle,
        tolerance=_TOLERANCE,
        moved_bytes=float(source.nbytes * (2 if mode == COPY else 1)),
        flops=float(elements if mode == READ else 0),
    )


def _compile_specs(capability: int) -> tuple[CompileSpec, ...]:
    return tuple(
        CompileSpec(
            label=f"{('read', 'write', 'copy')[mode]} {count}",
            function=_stream,
            signature={"source": "*fp32", "target": "*fp32", "sums": "*fp32", "count": count},
            constexprs={"MODE": mode, "CHUNK": _CHUNK},
            aligned=frozenset({"source", "target", "sums", "count"}),
            num_warps=_NUM_WARPS,
        )
        for mode in (READ, WRITE, COPY)
        for count in ("i32", "i64")  # what a launch takes by the number's size
    )


STREAM_KERNEL = Kernel(
    name="probe_stream",
    make_case=_make_case,
    shapes=tuple(
        {"elements": elements, "mode": mode, "programs": programs}
        for elements, programs in ((1, 1), (4097, 2), (20_000, 3))
        for mode in (READ, WRITE, COPY)
    ),
    dtypes=("float32",),
    interpreted=("float32",),
    compile_specs=_compile_specs,
    sources=(_stream,),
)

STREAM = Probe(
    name="stream",
    axes=("bytes", "mode"),
    sweep=_stream_sweep,
    small=tuple({"bytes": 66_000, "mode": mode} for mode in (READ, WRITE, COPY)),
    measure=_measure_stream,
    what="one pass over `bytes`",
    box_s=25.0,
)

L2_SWEEP = Probe(
    name="l2_sweep",
    axes=("bytes", "cold"),
    sweep=_l2_sweep,
    small=({"bytes": 66_000, "cold": 0}, {"bytes": 66_000, "cold": 1}),
    measure=_measure_l2,
    what="one read of `bytes`",
    box_s=15.0,
)
