"""Constants of each GPU's memory hierarchy, each with its source: `MEMORY_FITS`.

What nobody measured is None, or a prior that says so: it has an interval, and no place in
`measured`. `twin-calibrate` measures a GPU and puts its own values in a profile's parameters;
`memory_fit` takes those over the table's.

Sources in short: "chase logs" are public pointer chases of RRZE-HPC/gpu-benches and caps-tum/mt4g;
"read logs" its streaming reads; "A100 study" the published measurement of random reads on A100
80 GB, full-speed below a window of 64 GB; "prior" is general knowledge to be replaced.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from hwmodels.efficiency import EFFICIENCIES
from hwmodels.gpus import GPUS
from hwmodels.memory.units import PAGE_BYTES
from hwmodels.profile import ProfileError, find_shipped, open_profile

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MemoryFit:
    """Constants of one GPU's memory hierarchy; None: unknown.

    Attributes:
        gpu: whose they are.
        page_bytes: of device memory.
        tlb_entry_pages: pages that one entry of the outer TLB levels stands for.
        tlb_l1_entries: of one SM, a page each.
        tlb_l2_reach_bytes, tlb_l3_reach_bytes: what the levels of a GPC and of the GPU cover.
        tlb_l1_miss_cycles, tlb_l2_miss_cycles: a miss that the next level answers.
        walk_cycles: a miss of the last level; so many `walkers` work at a time.
        l2_near_cycles, l2_far_cycles, dram_cycles: plateaus of a single warp's chase.
        l2_bytes_per_s, stream_bytes_per_s: reads by all SMs, from the L2 and from DRAM.
        alignment_speed: of products by alignment class (bytes), 1 for 16.
        offset_copy_slowdown: most that a copy from a base off a line takes longer, L2-resident.
        shared_bytes_per_block, shared_bytes_per_sm: shared memory.
        sources: by field.
        intervals: (least, most) of fields that are priors or vary.
        measured: fields measured on this very part.
    """

    gpu: str
    page_bytes: int = PAGE_BYTES
    tlb_entry_pages: int = 16
    tlb_l1_entries: int | None = 16
    tlb_l2_reach_bytes: float | None = None
    tlb_l3_reach_bytes: float | None = None
    tlb_l1_miss_cycles: float | None = None
    tlb_l2_miss_cycles: float | None = None
    walk_cycles: float | None = None
    walkers: float | None = None
    l2_near_cycles: float | None = None
    l2_far_cycles: float | None = None
    dram_cycles: float | None = None
    l2_bytes_per_s: float | None = None
    stream_bytes_per_s: float | None = None
    alignment_speed: Mapping[int, float] = field(
        default_factory=lambda: MappingProxyType({16: 1.0, 8: 0.95, 4: 0.6, 2: 0.35}), hash=False
    )
    offset_copy_slowdown: float | None = 2.0
    shared_bytes_per_block: int | None = None
    shared_bytes_per_sm: int | None = None
    sources: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    intervals: Mapping[str, Interval] = field(default_factory=dict, hash=False, compare=False)
    measured: frozenset[str] = frozenset()

    @property
    def tlb_l1_reach_bytes(self) -> float | None:
        """What an SM's own TLB covers."""
        return None if self.tlb_l1_entries is None else float(self.tlb_l1_entries * self.page_bytes)

    def source_of(self, name: str) -> str:
        """Return where a constant comes from, for example `prior: ...`; `unknown` for None."""
        if getattr(self, name) is None:
            return "unknown"
        return self.sources.get(name, _COMMON_SOURCES.get(name, "prior"))

    def interval_of(self, name: str) -> Interval | None:
        """Return the least and the most a constant may be; None: it is unknown."""
        value = getattr(self, name)
        if not isinstance(value, int | float):
            return None
        return self.intervals.get(name, (float(value), float(value)))


CONSTANTS = tuple(
    f.name
    for f in fields(MemoryFit)
    if f.name not in ("gpu", "tlb_entry_pages", "sources", "intervals", "measured")
)
"""What a profile may say in its parameters `memory`, and `tlb_entry_pages`."""

_COMMON_SOURCES = {
    "page_bytes": "CUDA's allocators map 2 MiB pages (published and by vAttention's account)",
    "tlb_entry_pages": "A100 study: 16 sub-entries an entry",
    "tlb_l1_entries": "reverse-engineered on RTX 3080: 16 entries; Volta's reach of 32 MB agrees",
    "tlb_l2_reach_bytes": "prior: Volta and Turing, about 8 GB; chases are flat to 2.25 GB",
    "tlb_l1_miss_cycles": "inferred: chases rise by 2 (A100) and 9 cycles (GH200) to 2.25 GB",
    "tlb_l2_miss_cycles": "prior",
    "walk_cycles": "prior; Turing's miss of the L2 TLB is published as 472 cycles",
    "walkers": "prior: studies of GPU address translation simulate 8 to 64; geometric middle",
    "alignment_speed": "prior, inferred: 16-byte vector loads and TMA, narrower kernels, copies",
    "offset_copy_slowdown": "inferred: at most twice the lines a request; DRAM-bound a few %",
}

_TRANSLATION: dict[str, Any] = {
    "tlb_l2_reach_bytes": 8e9,
    "tlb_l1_miss_cycles": 10.0,
    "tlb_l2_miss_cycles": 100.0,
    "walk_cycles": 500.0,
    "walkers": 23.0,
}
_INTERVALS: dict[str, Interval] = {
    "tlb_l2_reach_bytes": (2.25e9, 64e9),
    "tlb_l1_miss_cycles": (0.0, 10.0),
    "tlb_l2_miss_cycles": (50.0, 150.0),
    "walk_cycles": (300.0, 700.0),
    "walkers": (8.0, 64.0),
    "offset_copy_slowdown": (1.0, 2.0),
}


def _stream(gpu: str) -> float:
    return EFFICIENCIES[gpu].stream * GPUS[gpu].hbm_bytes_per_s


_A100 = MemoryFit(
    "a100_sxm",
    **_TRANSLATION,
    tlb_l3_reach_bytes=64e9,
    l2_near_cycles=205.0,
    l2_far_cycles=398.0,
    dram_cycles=551.0,
    l2_bytes_per_s=5.4e12,
    stream_bytes_per_s=_stream("a100_sxm"),
    shared_bytes_per_block=163 * 2**10,
    shared_bytes_per_sm=164 * 2**10,
    sources={
        "tlb_l3_reach_bytes": "A100 study: an SM group at full speed below 64 GB",
        "l2_near_cycles": "chase logs",
        "l2_far_cycles": "chase logs, 24-38 MB",
        "dram_cycles": "chase logs, 0.15-2.25 GB",
        "l2_bytes_per_s": "read logs, flat to 24-28 MB",
        "stream_bytes_per_s": "read logs",
        "shared_bytes_per_block": "mt4g",
        "shared_bytes_per_sm": "mt4g",
    },
    intervals={
        **_INTERVALS,
        "l2_far_cycles": (390.0, 406.0),
        "stream_bytes_per_s": (1730e9, 1900e9),
    },
    measured=frozenset(
        {
            "tlb_l3_reach_bytes", "l2_near_cycles", "l2_far_cycles", "dram_cycles",
            "l2_bytes_per_s", "stream_bytes_per_s", "shared_bytes_per_block",
            "shared_bytes_per_sm",
        }
    ),
)  # fmt: skip

_H100 = MemoryFit(
    "h100_sxm",
    **_TRANSLATION,
    tlb_l3_reach_bytes=64e9,
    l2_near_cycles=280.0,
    l2_far_cycles=505.0,
    dram_cycles=695.0,
    l2_bytes_per_s=6.95e12,
    stream_bytes_per_s=_stream("h100_sxm"),
    shared_bytes_per_block=227 * 2**10,
    shared_bytes_per_sm=228 * 2**10,
    sources={
        "tlb_l3_reach_bytes": "prior: A100's, unmeasured on Hopper, flat to 2.25 GB at least",
        "l2_near_cycles": "chase logs (GH200)",
        "l2_far_cycles": "chase logs (GH200), 37-58 MB of its larger L2",
        "dram_cycles": "chase logs; a second tool says 834",
        "l2_bytes_per_s": "read logs (PCIe part), flat to 37 MB",
        "stream_bytes_per_s": "read logs",
        "shared_bytes_per_block": "mt4g",
        "shared_bytes_per_sm": "mt4g",
    },
    intervals={
        **_INTERVALS,
        "tlb_l3_reach_bytes": (2.25e9, float(GPUS["h100_sxm"].memory_bytes)),
        "l2_near_cycles": (219.0, 291.0),
        "l2_far_cycles": (490.0, 520.0),
        "dram_cycles": (690.0, 834.0),
    },
    measured=frozenset(
        {
            "l2_near_cycles", "dram_cycles", "stream_bytes_per_s", "shared_bytes_per_block",
            "shared_bytes_per_sm",
        }
    ),
)  # fmt: skip

_H200 = replace(
    _H100,
    gpu="h200_sxm",
    l2_bytes_per_s=9.85e12,
    stream_bytes_per_s=_stream("h200_sxm"),
    sources={
        **{name: f"h100_sxm: {text}" for name, text in _H100.sources.items()},
        "tlb_l3_reach_bytes": "prior: A100's, unmeasured on Hopper; reads are flat to 4.9 GB",
        "l2_bytes_per_s": "read logs, flat to 40 MB",
        "stream_bytes_per_s": "read logs, 3888-4100 GB/s",
    },
    intervals={
        **_H100.intervals,
        "tlb_l3_reach_bytes": (4.9e9, float(GPUS["h200_sxm"].memory_bytes)),
        "stream_bytes_per_s": (3888e9, 4100e9),
    },
    measured=frozenset({"l2_bytes_per_s", "stream_bytes_per_s"}),
)


def _borrowed(lender: MemoryFit, gpu: str, own: Mapping[str, tuple[Any, str]]) -> MemoryFit:
    """Return a lender's constants with a part's own (value, source) in their place.

    What belongs to the chip and not to its kind stays unknown unless the part has its own.
    """
    chips = ("l2_near_cycles", "l2_far_cycles", "dram_cycles", "l2_bytes_per_s")
    values: dict[str, Any] = {name: None for name in chips}
    values["stream_bytes_per_s"] = _stream(gpu) if gpu in EFFICIENCIES else None
    sources = {name: f"{lender.gpu}: {text}" for name, text in lender.sources.items()}
    sources["stream_bytes_per_s"] = "prior: the share of its datasheet that a relative reaches"
    values |= {name: value for name, (value, _) in own.items()}
    sources |= {name: source for name, (_, source) in own.items()}
    kept = {k: v for k, v in lender.intervals.items() if k not in own and k not in chips}
    kept.pop("stream_bytes_per_s", None)
    measured = frozenset(name for name, (_, text) in own.items() if not text.startswith("prior"))
    return replace(
        lender, gpu=gpu, **values, sources=sources, intervals=kept, measured=measured
    )


_L40S = _borrowed(
    _A100,
    "l40s",
    {
        "l2_near_cycles": (274.0, "chase logs"),
        "dram_cycles": (625.0, "chase logs"),
        "l2_bytes_per_s": (5.2e12, "read logs (L40), flat to 70-90 MB"),
        "stream_bytes_per_s": (_stream("l40s"), "read logs"),
        "shared_bytes_per_block": (99 * 2**10, "prior: CUDA's limit of compute capability 8.9"),
        "shared_bytes_per_sm": (100 * 2**10, "prior: CUDA's limit of compute capability 8.9"),
    },
)

MEMORY_FITS: dict[str, MemoryFit] = {
    "a100_sxm": _A100,
    "h100_sxm": _H100,
    "h200_sxm": _H200,
    "b200_sxm": _borrowed(
        _H100,
        "b200_sxm",
        {
            "l2_near_cycles": (295.0, "chase logs"),
            "dram_cycles": (860.0, "chase logs"),
        },
    ),
    "l40s": _L40S,
    "rtx_4090": _borrowed(_L40S, "rtx_4090", {}),
    "rtx_pro_6000": _borrowed(_L40S, "rtx_pro_6000", {}),
}


def memory_fit(gpu: str, parameters: Mapping[str, Any] | None = None) -> MemoryFit:
    """Return the constants of a GPU, with what a profile measured in their place.

    Args:
        gpu: its name; one that is not in the table borrows H100's, none of it measured.
        parameters: a profile's `parameters["memory"]`: constants by name. None as a value
            leaves the table's.

    Raises:
        ProfileError: a name or a value that is none.
    """
    known = MEMORY_FITS.get(gpu) or _borrowed(_H100, gpu, {})
    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    if not given:
        return known
    names = (*CONSTANTS, "tlb_entry_pages")
    for name in given:
        if name not in names:
            raise ProfileError(f"memory parameter {name!r} of {gpu}: no such constant")
    values = {name: _value(name, value, gpu) for name, value in given.items()}
    return replace(
        known,
        **values,
        sources={**known.sources, **dict.fromkeys(values, "measured: hardware profile")},
        intervals={k: v for k, v in known.intervals.items() if k not in values},
        measured=known.measured | values.keys(),
    )


def memory_fit_for(gpu: str, engine: str = "vllm", version: str | None = None) -> MemoryFit:
    """Return the constants of a GPU with what its shipped profile measured.

    They are the GPU's, whatever the engine: one without a profile takes vLLM's.
    """
    path = find_shipped(gpu, engine, version) or find_shipped(gpu, "vllm")
    return memory_fit(gpu, None if path is None else open_profile(path).parameters.get("memory"))


_WHOLE = ("page_bytes", "tlb_entry_pages", "tlb_l1_entries")
_SHARED = ("shared_bytes_per_block", "shared_bytes_per_sm")


def _value(name: str, value: Any, gpu: str) -> Any:
    """Return a constant as the fit holds it."""
    if name == "alignment_speed":
        if not isinstance(value, Mapping) or not value:
            raise ProfileError(f"memory parameter {name!r} of {gpu}: no speeds by class: {value!r}")
        return MappingProxyType({int(k): _number(name, v, gpu) for k, v in value.items()})
    number = _number(name, value, gpu)
    return int(number) if name in _WHOLE + _SHARED else number


def _number(name: str, value: Any, gpu: str) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if not usable or not math.isfinite(value) or value < 0 or (name in _WHOLE and value < 1):
        raise ProfileError(f"memory parameter {name!r} of {gpu}: {value!r} is no usable number")
    return float(value)
