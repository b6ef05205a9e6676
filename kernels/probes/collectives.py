"""Collectives between the ranks of one machine, through torch.distributed.

`python -m kernels.probes.collectives --ranks 2 --bytes 65536` starts a process a rank: NCCL where
there is a GPU for each, else gloo over the loopback, which proves the code and says nothing of
GPUs. `bytes` is the full buffer: the message of all-reduce and send/recv, the gathered buffer of
all-gather, the input of reduce-scatter. What is received is checked in each.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from kernels.needed import check_modules

if __name__ == "__main__":  # before the imports that would end in a traceback
    check_modules("python -m kernels.probes.collectives", ("numpy", "torch"))

import numpy as np
import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import ProcessException, spawn

from kernels.errors import KernelInputError
from kernels.probes.probe import ProbeError
from kernels.timing import MIN_REPETITIONS

_ELEMENT_BYTES = 4
_LIMIT = timedelta(seconds=120)


@dataclass(frozen=True, slots=True)
class CollectiveTime:
    """One collective at one size.

    Attributes:
        bytes: the full buffer.
        backend: nccl or gloo.
        seconds_median, seconds_p90: of a call, the slowest rank's, over `repetitions`; None: it
            did not run.
        problem: why it did not run, or what was received wrongly; empty: all is right.
    """

    collective: str
    ranks: int
    bytes: int
    backend: str
    seconds_median: float | None
    seconds_p90: float | None
    repetitions: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Buffers:
    """What one rank gives and takes: `count` elements in all, `count / ranks` a part."""

    rank: int
    ranks: int
    whole: torch.Tensor
    part: torch.Tensor


Call = Callable[[_Buffers], object]


def _all_reduce(b: _Buffers) -> object:
    return dist.all_reduce(b.whole)


def _all_gather(b: _Buffers) -> object:
    return _named("all_gather_single", "all_gather_into_tensor")(b.whole, b.part)


def _reduce_scatter(b: _Buffers) -> object:
    return _named("reduce_scatter_single", "reduce_scatter_tensor")(b.part, b.whole)


def _named(new: str, old: str) -> Any:
    """Return a function of torch.distributed by the name that this PyTorch knows it by."""
    return getattr(dist, new, None) or getattr(dist, old)


def _send_recv(b: _Buffers) -> object:
    """Rank 0 sends to rank 1; the others wait."""
    if b.rank == 0:
        return dist.send(b.whole, 1)
    return dist.recv(b.whole, 0) if b.rank == 1 else None


def _fill(b: _Buffers) -> None:
    """Give each rank and place values of its own, small enough for float32 to add exactly."""
    at = torch.arange(len(b.whole), device=b.whole.device) % 251
    b.whole.copy_(at + 1000 * (b.rank + 1))
    start = b.rank * len(b.part)
    b.part.copy_(b.whole[start : start + len(b.part)])


def _expected(collective: str, b: _Buffers) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (what this rank has received, what it should have)."""
    at = (torch.arange(len(b.whole), device=b.whole.device) % 251).float()
    summed = b.ranks * at + 1000.0 * b.ranks * (b.ranks + 1) / 2
    mine = slice(b.rank * len(b.part), (b.rank + 1) * len(b.part))
    if collective == "all_reduce":
        return b.whole, summed
    if collective == "reduce_scatter":
        return b.part, summed[mine]
    if collective == "all_gather":
        sender = torch.arange(len(b.whole), device=at.device) // len(b.part)
        return b.whole, at + 1000.0 * (sender + 1)
    sender = torch.tensor(0 if b.rank < 2 else b.rank, device=at.device)
    return b.whole, at + 1000.0 * (sender + 1)


COLLECTIVES: dict[str, Call] = {
    "all_reduce": _all_reduce,
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "send_recv": _send_recv,
}
"""What is measured, by name."""


def backend_for(ranks: int) -> str:
    """Return nccl if each rank can have a GPU, else gloo."""
    enough = torch.cuda.is_available() and torch.cuda.device_count() >= ranks
    return "nccl" if enough and dist.is_nccl_available() else "gloo"


def measure_collectives(
    ranks: int,
    sizes: Sequence[int],
    *,
    collectives: Sequence[str] = tuple(COLLECTIVES),
    repetitions: int = MIN_REPETITIONS,
) -> list[CollectiveTime]:
    """Start a process a rank, and return each collective at each size.

    Args:
        sizes: bytes of the full buffer, multiples of 4 · ranks.

    Raises:
        KernelInputError: fewer than two ranks, a size that isn't such a multiple, or a name that
            is none of `COLLECTIVES`.
        ProbeError: a rank failed, or ended before the others.
    """
    if ranks < 2:
        raise KernelInputError(f"ranks is {ranks}; at least 2 are needed")
    for size in sizes:
        if size <= 0 or size % (_ELEMENT_BYTES * ranks):
            raise KernelInputError(
                f"bytes is {size}; a positive multiple of {_ELEMENT_BYTES * ranks} is needed"
            )
    unknown = sorted(set(collectives) - set(COLLECTIVES))
    if unknown:
        raise KernelInputError(
            f"unknown collective {', '.join(unknown)}; known are {', '.join(COLLECTIVES)}"
        )
    backend = backend_for(ranks)
    with tempfile.TemporaryDirectory(prefix="collectives-") as folder:
        # A file to meet at: no port that another process may have.
        plan = (ranks, backend, folder, tuple(sizes), tuple(collectives), repetitions)
        try:
            spawn(_worker, args=plan, nprocs=ranks)
        except ProcessException as error:
            reason = str(error).strip().splitlines()[-1]
            raise ProbeError(f"collectives over {backend} failed: {reason}") from None
        rows = json.loads((Path(folder) / "rows.json").read_text(encoding="utf-8"))
    return [CollectiveTime(**row) for row in rows]


def _worker(
    rank: int,
    ranks: int,
    backend: str,
    folder: str,
    sizes: Sequence[int],
    collectives: Sequence[str],
    repetitions: int,
) -> None:
    device = torch.device("cuda", rank) if backend == "nccl" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    meet = f"file://{folder}/meeting"
    dist.init_process_group(backend, meet, rank=rank, world_size=ranks, timeout=_LIMIT)
    try:
        rows = [
            _measure(name, size, backend, device, repetitions)
            for name in collectives
            for size in sizes
        ]
        dist.barrier()
    finally:
        dist.destroy_process_group()
    if rank == 0:
        text = json.dumps([asdict(row) for row in rows])
        (Path(folder) / "rows.json").write_text(text, encoding="utf-8")


def _measure(
    name: str, size: int, backend: str, device: torch.device, repetitions: int
) -> CollectiveTime:
    rank, ranks = dist.get_rank(), dist.get_world_size()
    count = size // _ELEMENT_BYTES
    whole = torch.empty(count, device=device)
    buffers = _Buffers(rank, ranks, whole, torch.empty(count // ranks, device=device))
    call = COLLECTIVES[name]
    _fill(buffers)
    problem = ""
    try:
        call(buffers)
    except (RuntimeError, NotImplementedError) as error:
        # All ranks refuse alike what their backend hasn't got.
        problem = f"{backend} has no {name}: {str(error).splitlines()[0]}"
        return CollectiveTime(name, ranks, size, backend, None, None, 0, problem)
    received, wanted = _expected(name, buffers)
    if _slowest(float(not torch.equal(received, wanted)), device):
        problem = f"{name} of {size} bytes was received wrongly"
    seconds = [_slowest(_call_s(call, buffers), device) for _ in range(repetitions)]
    median = float(np.median(seconds))
    p90 = max(median, float(np.percentile(seconds, 90)))
    return CollectiveTime(name, ranks, size, backend, median, p90, repetitions, problem)


def _call_s(call: Call, buffers: _Buffers) -> float:
    """Seconds of one call on this rank, all ranks starting together."""
    device = buffers.whole.device
    buffers.whole.fill_(1.0)
    dist.barrier()
    if device.type != "cuda":
        start_s = time.perf_counter()
        call(buffers)
        return time.perf_counter() - start_s
    torch.cuda.synchronize(device)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    call(buffers)
    end.record()
    torch.cuda.synchronize(device)
    return start.elapsed_time(end) / 1e3


def _slowest(value: float, device: torch.device) -> float:
    """Return the largest of all ranks' values."""
    mine = torch.tensor([value], dtype=torch.float64, device=device)
    dist.all_reduce(mine, op=dist.ReduceOp.MAX)
    found = float(mine)
    return found if math.isfinite(found) else math.inf


def main(arguments: list[str] | None = None) -> int:
    """Measure, print a line each (or JSON); return 1 if something was received wrongly."""
    parser = argparse.ArgumentParser(
        prog="python -m kernels.probes.collectives",
        description="Time and check collectives between the ranks of one machine.",
    )
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bytes", type=int, action="append", help="may be repeated")
    parser.add_argument("--collective", action="append", choices=list(COLLECTIVES))
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    chosen = parser.parse_args(arguments)
    sizes = chosen.bytes or [2**10, 2**16, 2**20, 2**24]
    names = chosen.collective or list(COLLECTIVES)
    try:
        rows = measure_collectives(chosen.ranks, sizes, collectives=names)
    except KernelInputError as error:
        parser.error(str(error))
    except ProbeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for row in rows:
        print(json.dumps(asdict(row)) if chosen.json else _line(row))
    return 1 if any(row.problem and row.seconds_median is not None for row in rows) else 0


def _line(row: CollectiveTime) -> str:
    head = f"{row.backend:5s} {row.collective:15s} {row.ranks} ranks {row.bytes:12d} B"
    if row.seconds_median is None:
        return f"{head}  {row.problem}"
    times = f"{1e6 * row.seconds_median:10.1f} us, P90 {1e6 * (row.seconds_p90 or 0):10.1f} us"
    return f"{head} {times}  {row.problem or 'ok'}"


def _spawned() -> Any:
    """Run `main` by its import name: what spawn starts must find `_worker` by it."""
    from kernels.probes.collectives import main as imported

    return imported()


if __name__ == "__main__":
    sys.exit(_spawned())
