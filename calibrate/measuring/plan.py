"""What to measure on a GPU, the most valuable first."""

from collections.abc import Iterable, Sequence

from calibrate.measuring.item import Item
from calibrate.measuring.order import Shape, interleaved
from calibrate.measuring.sweeps import Sweep, sweeps
from hwmodels.spec import GpuSpec
from twin.errors import InputError
from twin.naming import remedy_for

_LAUNCHES = 24
_SETUP_S = 0.03
_FIXED_S = 10e-6
_FILLED_BYTES_PER_S = 100e9
"""Random numbers a GPU makes, writes and converts."""
_SMALL = 4


def kernel_items(gpu: GpuSpec, bandwidth: float | None = None) -> list[tuple[list[Item], float]]:
    """Return the kernels' items of each table with the table's weight.

    Args:
        gpu: bounds the shapes by its memory.
        bandwidth: bytes/s, for the estimates, where the GPU's isn't known.
    """
    rate = bandwidth or gpu.hbm_bytes_per_s or 500e9
    found = []
    for sweep in sweeps(gpu):
        items = [_item(sweep, point, gpu, rate) for point in sweep.points]
        found.append(([item for item in items if item is not None], sweep.weight))
    return found


def chosen(
    queues: Iterable[tuple[list[Item], float]], only: Sequence[str], families: Iterable[str]
) -> list[Item]:
    """Return the plan: the items of the families asked for, or of all, interleaved.

    Raises:
        InputError: there is no such family.
    """
    known = sorted(set(families))
    for name in only:
        if name not in known:
            raise InputError(f"no family {name!r}", where="--only", remedy=remedy_for(name, known))
    wanted = set(only or known)
    kept = [([i for i in items if i.family in wanted], weight) for items, weight in queues]
    return interleaved(kept)


def _item(sweep: Sweep, point: Shape, gpu: GpuSpec, rate: float) -> Item | None:
    moved, flops = sweep.work(point)
    if moved > gpu.visible_memory_bytes / 4:
        return None
    work_s = max(moved / rate, flops / (0.6 * gpu.flops_per_s["bf16"])) + _FIXED_S
    flush_s = 4 * gpu.l2_bytes / rate if sweep.l2 == "cold" else 0.0
    per_launch = work_s + flush_s if sweep.l2 == "cold" else 16 * work_s
    return Item(
        family=sweep.family,
        table=sweep.table,
        shape=point,
        launches=sweep.launches,
        dtype=sweep.dtype,
        l2=sweep.l2,
        work_s=work_s,
        box_s=_SETUP_S + moved / _FILLED_BYTES_PER_S + _LAUNCHES * per_launch,
    )


def smallest(queues: Iterable[tuple[list[Item], float]]) -> list[tuple[list[Item], float]]:
    """Return the few cheapest items of each queue: a plan of seconds, to see that all works."""
    found = []
    for items, weight in queues:
        cheap = sorted(items, key=lambda item: item.work_s)[:_SMALL]
        found.append((cheap, weight))
    return found
