"""A probe: a question to the hardware, at a few shapes, answered in seconds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import torch

from kernels.case import Shape
from kernels.device import DeviceFacts
from kernels.errors import KernelInputError
from kernels.timing import Timer, Timing

Needs = Literal["any", "gpu", "gpus"]
T = TypeVar("T")


class ProbeError(RuntimeError):
    """A probe that cannot answer here, or whose kernel did the wrong thing; one line."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to the hardware.

    Attributes:
        name: key in `kernels.probes.catalogue.PROBES`.
        axes: of its shapes, all integers; a flag is 0 or 1, and its module says what they mean.
        sweep: the full plan on such a device, the most telling points first.
        small: runs anywhere in a second or two, in Triton's interpreter too, unless `needs` says
            otherwise.
        measure: answers at one shape. Checks what its kernel did.
        what: what the seconds are of, for example "one load".
        box_s: seconds that the full plan should take on a GPU.
        needs: "gpu": cannot even be launched without one; "gpus": without two.
    """

    name: str
    axes: tuple[str, ...]
    sweep: Callable[[DeviceFacts], tuple[Shape, ...]]
    small: tuple[Shape, ...]
    measure: Callable[[Shape, torch.device, Timer], Timing]
    what: str
    box_s: float
    needs: Needs = "any"


def sizes_of(shape: Shape, axes: Sequence[str], **least: int) -> tuple[int, ...]:
    """Return a shape's sizes in the order of `axes`.

    Args:
        least: smallest size of an axis; 0 where it isn't given.

    Raises:
        KernelInputError: other axes, or a size below its least.
    """
    if set(shape) != set(axes):
        given = ", ".join(sorted(shape)) or "none"
        raise KernelInputError(f"a shape has the axes {given}; {', '.join(axes)} are needed")
    for axis in axes:
        if shape[axis] < least.get(axis, 0):
            raise KernelInputError(
                f"{axis} is {shape[axis]}; at least {least.get(axis, 0)} is needed"
            )
    return tuple(shape[axis] for axis in axes)


def each_of(timing: Timing, count: int) -> Timing:
    """Return the seconds of one of `count` equal parts of a launch."""
    return Timing(timing.seconds / count, timing.l2)


def ends_first(points: Iterable[T]) -> tuple[T, ...]:
    """Return points so that any first few of them lie spread over all: both ends, then middles."""
    given = list(points)
    if not given:
        return ()
    order = [0, len(given) - 1]
    gaps = [(0, len(given) - 1)]
    while gaps:
        low, high = gaps.pop(0)
        if high - low > 1:
            middle = (low + high) // 2
            order.append(middle)
            gaps += [(low, middle), (middle, high)]
    return tuple(given[at] for at in dict.fromkeys(order))


def doublings(first: int, last: int) -> list[int]:
    """Return first, 2 · first, 4 · first … up to last."""
    found = []
    while first <= last:
        found.append(first)
        first *= 2
    return found


def crossed(shapes: Iterable[Mapping[str, int]], **axes: Iterable[int]) -> tuple[Shape, ...]:
    """Return each shape with each value of one more axis, the axis running fastest."""
    found = [dict(shape) for shape in shapes]
    for axis, values in axes.items():
        kinds = list(values)
        found = [{**shape, axis: value} for shape in found for value in kinds]
    return tuple(found)


def must_agree(name: str, actual: torch.Tensor, expected: torch.Tensor, tolerance: float) -> None:
    """Hold what a probe's kernel computed against what it should have.

    Raises:
        ProbeError: they differ by more than `tolerance`, relative to the largest expected.
    """
    have, want = actual.double(), expected.double()
    largest = float(want.abs().max()) if want.numel() else 0.0
    error = float((have - want).abs().max()) if want.numel() else 0.0
    if not error <= tolerance * max(largest, 1e-30):
        raise ProbeError(f"{name}: the kernel is wrong by {error:g}, of {largest:g}")
