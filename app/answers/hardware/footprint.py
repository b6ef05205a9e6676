"""Latency by footprint of a setup's GPU, and the constants that it is made of."""

from dataclasses import dataclass, replace
from typing import Any

from app.answers.setup import Setup
from hwmodels.memory.chase import chase_latency
from hwmodels.memory.constants import MemoryFit
from hwmodels.memory.units import LINE_BYTES
from hwmodels.profile import HardwareProfile
from hwmodels.spec import GpuSpec
from twin.engine.kv_layout import memory_fit_of
from twin.report.charts.chart import Chart
from twin.report.charts.footprint import LOOKS, Latency, latency_by_footprint
from twin.report.numbers import significant
from twin.units import GIB, MIB

_LEAST_BYTES = 2**18
_PER_OCTAVE = 12
_PLATEAUS = ("l2_near_cycles", "l2_far_cycles", "dram_cycles")

_NAMES: dict[str, tuple[str, str]] = {
    "l2_near_cycles": ("L2, near segment", "cycles"),
    "l2_far_cycles": ("L2, far segment", "cycles"),
    "dram_cycles": ("DRAM", "cycles"),
    "tlb_l1_entries": ("TLB of an SM", "pages"),
    "tlb_l1_miss_cycles": ("miss of the SM's TLB", "cycles"),
    "tlb_l2_reach_bytes": ("second TLB reaches", "bytes"),
    "tlb_l2_miss_cycles": ("miss of the second TLB", "cycles"),
    "tlb_l3_reach_bytes": ("last TLB reaches", "bytes"),
    "walk_cycles": ("page walk", "cycles"),
    "walkers": ("walks at a time", ""),
    "l2_bytes_per_s": ("reads from the L2", "bytes/s"),
    "stream_bytes_per_s": ("reads from DRAM", "bytes/s"),
}
"""Constants that are told: name and unit."""


@dataclass(frozen=True, slots=True)
class FootprintAnswer:
    """The memory hierarchy of a GPU.

    Attributes:
        chart: latency over footprint; without a spec where it is not known.
        sentence: how much of it was measured on this part.
        constants: as a table shows them, each with its interval and its source.
    """

    chart: Chart
    sentence: str
    constants: list[dict[str, Any]]


def footprint_of(setup: Setup) -> FootprintAnswer:
    """Return latency by footprint of a setup's GPU.

    Raises:
        InputError: its parts do not go together.
    """
    scenario = setup.scenario()
    gpu, fit = scenario.gpu, memory_fit_of(scenario)
    given = scenario.profile.profile if scenario.profile is not None else None
    curve = latency_curve(fit, gpu)
    chart = latency_by_footprint(gpu.title, curve, _reaches(fit, gpu), _measured(given, fit))
    return FootprintAnswer(chart, _sentence(fit, gpu), [_row(fit, name) for name in _NAMES])


def latency_curve(fit: MemoryFit, gpu: GpuSpec) -> list[Latency]:
    """Return the latencies of both patterns up to all of a GPU's memory; unknown ones left out."""
    quick, slow = extremes(fit)
    strides = dict(zip(LOOKS, (LINE_BYTES, fit.page_bytes), strict=True))
    found = []
    for pattern, stride in strides.items():
        for footprint in _footprints(max(_LEAST_BYTES, stride), gpu.memory_bytes):
            middle, low, high = (_ns(footprint, stride, one, gpu) for one in (fit, quick, slow))
            if middle is not None and low is not None and high is not None:
                found.append(Latency(pattern, footprint, middle, low, high))
    return found


def _footprints(least: int, most: int) -> list[float]:
    found, footprint = [], float(least)
    while footprint < most:
        found.append(footprint)
        footprint *= 2 ** (1 / _PER_OCTAVE)
    return [*found, float(most)]


def _ns(footprint: float, stride: int, fit: MemoryFit, gpu: GpuSpec) -> float | None:
    latency = chase_latency(footprint, stride, fit, gpu)
    return None if latency is None else 1e9 * latency.cycles / gpu.boost_hz


def extremes(fit: MemoryFit) -> tuple[MemoryFit, MemoryFit]:
    """Return the constants that make a load quickest and slowest, within intervals."""
    quick, slow = fit.extremes()
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    for name in _PLATEAUS:
        interval = fit.interval_of(name)
        if interval is not None:
            low[name], high[name] = interval
    return replace(quick, **low), replace(slow, **high)


def _reaches(fit: MemoryFit, gpu: GpuSpec) -> dict[str, float]:
    reaches = {
        "L2": float(gpu.l2_bytes),
        "SM's TLB": fit.tlb_l1_reach_bytes,
        "second TLB": fit.tlb_l2_reach_bytes,
        "last TLB": fit.tlb_l3_reach_bytes,
    }
    return {f"{name} {_size(at)}": at for name, at in reaches.items() if at is not None}


def _size(num_bytes: float) -> str:
    """Reaches are told as their sources do: binary below a GiB, decimal above."""
    if num_bytes < GIB:
        return f"{num_bytes / MIB:.3g} MiB"
    return f"{num_bytes / 1e9:.3g} GB"


def _measured(profile: HardwareProfile | None, fit: MemoryFit) -> list[Latency]:
    """The chases of an own profile: one load a line, or a page."""
    table = None if profile is None else profile.tables.get("chase")
    if table is None:
        return []
    strides = {LINE_BYTES: "a load a line", fit.page_bytes: "a load a page"}
    columns = (table[name].tolist() for name in ("footprint_bytes", "stride_bytes", "seconds"))
    return [
        Latency(strides[stride], footprint, 1e9 * s, 1e9 * s, 1e9 * s)
        for footprint, stride, s in zip(*columns, strict=True)
        if stride in strides
    ]


def _sentence(fit: MemoryFit, gpu: GpuSpec) -> str:
    known = [name for name in _NAMES if getattr(fit, name) is not None]
    own = [name for name in known if name in fit.measured]
    text = f"{len(own)} of {len(_NAMES)} constants were measured on {gpu.title}"
    unknown = [_NAMES[name][0] for name in _NAMES if name not in known]
    if unknown:
        text += f"; unknown: {', '.join(unknown)}"
    if fit.pretended:
        text += f"; {len(fit.pretended)} are pretended by a dry run"
    return f"{text}. The others are priors or borrowed, as the table says."


def _row(fit: MemoryFit, name: str) -> dict[str, Any]:
    title, unit = _NAMES[name]
    value, interval = getattr(fit, name), fit.interval_of(name)
    spread = ""
    if interval is not None and interval[0] < interval[1]:
        spread = f"{_quantity(interval[0], unit)} to {_quantity(interval[1], unit)}"
    return {
        "constant": title,
        "value": "unknown" if value is None else _quantity(value, unit),
        "interval": spread,
        "measured here": "yes" if name in fit.measured else "no",
        "source": fit.source_of(name),
    }


def _quantity(value: float, unit: str) -> str:
    if unit == "bytes":
        return f"{significant(value / 1e9)} GB"
    if unit == "bytes/s":
        return f"{significant(value / 1e9)} GB/s"
    return f"{significant(value)} {unit}".strip()
