"""Copies between host and device memory.

Axes: `bytes` in all; `pinned` 1: host memory that the device reads by itself, 0: pageable;
`to_host` 1: from the device, 0: to it; `fragments`: so many equal pieces, each copied by itself,
which lie apart on the source's side. Pinned copies are timed on the device, pageable ones by the
host, which waits for them anyway.
"""

from collections.abc import Callable

import torch

from kernels.case import Shape
from kernels.checks import check
from kernels.device import DeviceFacts
from kernels.probes.events import wall_seconds
from kernels.probes.probe import Probe, ProbeError, crossed, ends_first, sizes_of
from kernels.timing import L2State, Timer, Timing

_GAP = 2
"""A fragment's share of the room between two."""


def _measure(shape: Shape, device: torch.device, timer: Timer) -> Timing:
    num_bytes, pinned, to_host, fragments = sizes_of(shape, TRANSFER.axes, bytes=1, fragments=1)
    check(
        num_bytes % fragments == 0,
        f"fragments is {fragments}, which does not divide {num_bytes} bytes",
    )
    on_gpu = device.type == "cuda"
    piece = num_bytes // fragments
    apart = _GAP if fragments > 1 else 1
    host, there = torch.device("cpu"), device
    source = _buffer(fragments, piece * apart, there if to_host else host, bool(pinned) and on_gpu)
    target = _buffer(fragments, piece, host if to_host else there, bool(pinned) and on_gpu)
    source.copy_(torch.randint(-128, 128, source.shape, dtype=torch.int8))
    pieces = [(target[at], source[at, :piece]) for at in range(fragments)]
    timing = _time(_copying(pieces), pinned=bool(pinned), device=device, timer=timer)
    if not torch.equal(target.cpu(), source[:, :piece].cpu()):
        raise ProbeError(f"transfer: {num_bytes} bytes in {fragments} pieces arrived otherwise")
    return timing


def _buffer(rows: int, columns: int, device: torch.device, pinned: bool) -> torch.Tensor:
    pin = pinned and device.type == "cpu"
    return torch.zeros(rows, columns, dtype=torch.int8, device=device, pin_memory=pin)


def _copying(pieces: list[tuple[torch.Tensor, torch.Tensor]]) -> Callable[[], None]:
    def copy() -> None:
        for target, source in pieces:
            target.copy_(source, non_blocking=True)

    return copy


def _time(
    launch: Callable[[], object], *, pinned: bool, device: torch.device, timer: Timer
) -> Timing:
    # Cold, since a graph of copies would hide what each costs the host.
    if pinned or device.type != "cuda":
        return timer.time(launch, l2=L2State.COLD)
    return Timing(wall_seconds(device, launch), L2State.COLD)


def _sweep(facts: DeviceFacts) -> tuple[Shape, ...]:
    sizes = [{"bytes": size} for size in ends_first([2**p for p in (12, 16, 18, 20, 22, 24, 28)])]
    whole = crossed(sizes, pinned=[1, 0], to_host=[0, 1], fragments=[1])
    pieces = crossed(
        [{"bytes": 2**25}], pinned=[1], to_host=[0, 1], fragments=ends_first([4, 16, 64, 512, 4096])
    )
    return (*whole[:8], *pieces, *whole[8:])


TRANSFER = Probe(
    name="transfer",
    axes=("bytes", "pinned", "to_host", "fragments"),
    sweep=_sweep,
    small=crossed([{"bytes": 4096}], pinned=[0, 1], to_host=[0, 1], fragments=[1, 4]),
    measure=_measure,
    what="the whole transfer",
    box_s=40.0,
)
