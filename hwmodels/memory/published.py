"""Constants of each GPU's memory hierarchy as published, or priors that say so.

What nobody measured is None, or a prior: it has an interval, and no place in `measured`. Sources
in short: "chase logs" are public pointer chases of RRZE-HPC/gpu-benches and caps-tum/mt4g; "read
logs" streaming reads of gpu-benches; "A100 study" the published measurement of random reads on
A100 80 GB, full-speed below a window of 64 GB; "prior" is general knowledge to be replaced.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hwmodels.efficiency import EFFICIENCIES
from hwmodels.gpus import GPUS
from hwmodels.memory.constants import Interval, MemoryFit

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

H100 = MemoryFit(
    "h100_sxm",
    **_TRANSLATION,
    tlb_l3_reach_bytes=64e9,
    l2_near_cycles=280.0,
    l2_far_cycles=505.0,
    dram_cycles=690.0,
    l2_bytes_per_s=6.95e12,
    stream_bytes_per_s=_stream("h100_sxm"),
    shared_bytes_per_block=227 * 2**10,
    shared_bytes_per_sm=228 * 2**10,
    sources={
        "tlb_l3_reach_bytes": "prior: A100's, unmeasured on Hopper, flat to 2.25 GB at least",
        "l2_near_cycles": "chase logs (GH200)",
        "l2_far_cycles": "chase logs (GH200), 37-58 MB of its larger L2",
        "dram_cycles": "chase logs (GH200), 680-700; a second tool says 834",
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
        "dram_cycles": (680.0, 834.0),
    },
    # GH200's chip is the same, its clocks and L2 are not.
    measured=frozenset({"stream_bytes_per_s", "shared_bytes_per_block", "shared_bytes_per_sm"}),
)

_H200 = replace(
    H100,
    gpu="h200_sxm",
    l2_bytes_per_s=9.85e12,
    stream_bytes_per_s=_stream("h200_sxm"),
    sources={
        **{name: f"h100_sxm: {text}" for name, text in H100.sources.items()},
        "tlb_l3_reach_bytes": "prior: A100's, unmeasured on Hopper; reads are flat to 4.9 GB",
        "l2_bytes_per_s": "read logs, flat to 40 MB",
        "stream_bytes_per_s": "read logs, 3888-4100 GB/s",
    },
    intervals={
        **H100.intervals,
        "tlb_l3_reach_bytes": (4.9e9, float(GPUS["h200_sxm"].memory_bytes)),
        "stream_bytes_per_s": (3888e9, 4100e9),
    },
    measured=frozenset({"l2_bytes_per_s", "stream_bytes_per_s"}),
)


def borrowed(lender: MemoryFit, gpu: str, own: Mapping[str, tuple[Any, str]]) -> MemoryFit:
    """Return a lender's constants with a part's own (value, source) in their place.

    What belongs to the chip and not to its kind stays unknown unless the part has its own.
    """
    chips = ("l2_near_cycles", "l2_far_cycles", "dram_cycles", "l2_bytes_per_s")
    values: dict[str, Any] = dict.fromkeys(chips)
    values["stream_bytes_per_s"] = _stream(gpu) if gpu in EFFICIENCIES else None
    sources = {name: f"{lender.gpu}: {text}" for name, text in lender.sources.items()}
    sources["stream_bytes_per_s"] = "prior: the share of its datasheet that a relative reaches"
    values |= {name: value for name, (value, _) in own.items()}
    sources |= {name: source for name, (_, source) in own.items()}
    kept = {k: v for k, v in lender.intervals.items() if k not in own and k not in chips}
    kept.pop("stream_bytes_per_s", None)
    measured = frozenset(name for name, (_, text) in own.items() if not text.startswith("prior"))
    return replace(lender, gpu=gpu, **values, sources=sources, intervals=kept, measured=measured)


_L40S = borrowed(
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
    "h100_sxm": H100,
    "h200_sxm": _H200,
    "b200_sxm": borrowed(
        H100,
        "b200_sxm",
        {
            "l2_near_cycles": (295.0, "chase logs"),
            "dram_cycles": (860.0, "chase logs"),
        },
    ),
    "l40s": _L40S,
    "rtx_4090": borrowed(_L40S, "rtx_4090", {}),
    "rtx_pro_6000": borrowed(_L40S, "rtx_pro_6000", {}),
}
