"""NCCL's own cost model: the prior for rank counts and links without a measured table.

Source: the tuning constants of NVIDIA/nccl (base latency and per-hop latency by algorithm and
protocol). Against measured minima on H100 the formula errs by -4 to +41 % (latency), so treat
results as ±50 %.
"""

from hwmodels.spec import LinkSpec

_US = 1e-6
# Base and per-hop microseconds of the LL, LL128 and Simple protocols.
_BASE = {"ring": (6.6, 14.0, 8.4), "tree": (6.8, 14.0, 8.4)}
_HOP = {
    ("nvlink", "ring"): (0.6, 1.9, 3.4),
    ("nvlink", "tree"): (0.6, 1.25, 4.0),
    ("pcie", "ring"): (1.0, 2.5, 5.7),
    ("pcie", "tree"): (1.0, 2.5, 5.7),
}
# Share of the raw link rate that large rings reach: 222 of 300 GB/s on A100, 335 of 450 on H100.
_BUS_SHARE = 0.74
# LL carries a flag with every word: half the rate, capped within a node.
_LL_SHARE = 0.5
_LL_CAP = {"ampere": 87.7e9, "hopper": 141e9}
_LL128_SHARE = 0.92
# Measured small-message latency over the formula's.
_LATENCY_SCALE = {"ampere": 1.35, "blackwell": 1.45}


def nccl_prior_s(
    kind: str, num_bytes: float, ranks: int, link: LinkSpec, architecture: str
) -> float:
    """Return seconds of a collective in one node.

    Args:
        kind: all_reduce, all_gather, reduce_scatter or all_to_all.
        num_bytes: the full buffer.
        link: what joins the GPUs; sharing of PCIe root ports isn't modelled.
        architecture: scales the latency where measurements exist.
    """
    bus = _BUS_SHARE * link.bytes_per_s
    rates = (
        min(_LL_SHARE * bus, _LL_CAP.get(architecture, _LL_CAP["hopper"])),
        _LL128_SHARE * bus if link.kind == "nvlink" else 0.0,  # LL128 needs NVLink
        bus,
    )
    steps = 2 * (ranks - 1) if kind == "all_reduce" else ranks - 1
    carried = num_bytes * steps / ranks
    scale = _LATENCY_SCALE.get(architecture, 1.0) if link.kind == "nvlink" else 1.0
    times = []
    for algorithm in ("ring", "tree") if kind == "all_reduce" else ("ring",):
        for protocol, rate in enumerate(rates):
            if rate:
                latency = _BASE[algorithm][protocol] + steps * _HOP[link.kind, algorithm][protocol]
                times.append(scale * latency * _US + carried / rate)
    return min(times)
