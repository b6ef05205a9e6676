"""What kernels reach of a GPU's facts: fitted parameters, one typed table.

Facts stand in `hwmodels.gpus`; the numbers here are fits of the forms in `hwmodels.gemm`,
`hwmodels.attention` and so on to public kernel tables (aiconfigurator-core 0.12.0: A100 with
vLLM 0.14.0, H100 and H200 with vLLM 0.24.0) and to public micro-benchmark logs (gpu-benches).
A part that nobody measured borrows from the part whose kernels it runs: `measured` is then
False and `fitted_on` names the lender. Expect ±30 % there.
"""

import math
from dataclasses import dataclass, replace

from hwmodels.gpus import GPUS
from hwmodels.spec import GpuSpec


@dataclass(frozen=True, slots=True)
class GemmFit:
    """Parameters of the tile + wave + split-K form (`hwmodels.gemm`).

    `tensor` and `memory` are shares of the datasheet rates; `p_norm` joins the compute, memory
    and L2 terms (infinity: their maximum); `saturation` is the share of SMs at which half the
    bandwidth is reached.
    """

    t0_s: float
    tensor: float
    memory: float
    p_norm: float
    wave_s: float
    split_s: float
    l2_bytes_per_s: float
    saturation: float
    fitted_on: str
    measured: bool = True


@dataclass(frozen=True, slots=True)
class PrefillFit:
    """Parameters of the additive prefill form.

    Its bandwidths are absolute: H100 and H200 agree in bytes/s, not in their share of HBM.
    `narrow_head` multiplies `tensor` for a head_dim of 64 and below.
    """

    t0_s: float
    query_bytes_per_s: float
    kv_write_bytes_per_s: float
    tensor: float
    narrow_head: float
    fitted_on: str
    measured: bool = True


@dataclass(frozen=True, slots=True)
class DecodeFit:
    """Parameters of the CTA-floor + split form of decode attention.

    `warm_*` describe KV that the L2 still holds, as in single-kernel benchmarks; serving never
    uses them. `trusted` is False where the fit converged badly.
    """

    t0_s: float
    memory: float
    cta_s: float
    split_s: float
    p_norm: float
    per_query_head: float
    warm_bytes_per_s: float
    warm_threshold: float
    fitted_on: str
    measured: bool = True


@dataclass(frozen=True, slots=True)
class LaunchFit:
    """Seconds between back-to-back kernels, and the host's time for one eager operation."""

    stream_gap_s: float
    graph_gap_s: float
    eager_op_s: float
    fitted_on: str
    measured: bool = True


@dataclass(frozen=True, slots=True)
class Efficiency:
    """All fits of one GPU. `stream` is the share of HBM bandwidth plain streaming reaches."""

    gemm: GemmFit
    prefill: PrefillFit
    decode: DecodeFit
    launch: LaunchFit
    stream: float
    stream_measured: bool = True

    @property
    def measured(self) -> bool:
        """Whether every kernel family was fitted on this very part."""
        fits = (self.gemm, self.prefill, self.decode, self.launch)
        return self.stream_measured and all(fit.measured for fit in fits)

    @property
    def borrowed_from(self) -> tuple[str, ...]:
        """The parts whose fits stand in, sorted; empty when all is measured."""
        fits = (self.gemm, self.prefill, self.decode, self.launch)
        return tuple(sorted({fit.fitted_on for fit in fits if not fit.measured}))


# Seconds of a small fused kernel before its bytes count: "5 a layer, 2 us + bytes" explained
# 3.5 points of ITL error in runs of vLLM 0.15.1.
SMALL_KERNEL_S = 2e-6

# Median speed-up of FP8 over bf16 GEMM on H100 (n, k >= 2048) at the geometric middle of each
# range of m: up to 16, 17-128, 129-1024, 1025-8192, above. Between them log(m) interpolates;
# the spread is wide (P10-P90 0.69-1.91), so this is a prior, not a law.
FP8_GEMM_SPEEDUP = ((4.0, 1.46), (47.0, 1.39), (363.0, 1.03), (2897.0, 1.11), (16384.0, 1.42))

# Median time of decode attention over FP8 KV against bf16 KV on H100, by bytes of the bf16 KV:
# ranges below 1 MB, 1-20, 20-100, 100-400 and above 400 MB, each at its geometric middle.
FP8_KV_RATIO = ((0.5e6, 1.12), (4.5e6, 1.10), (45e6, 1.00), (200e6, 0.74), (800e6, 0.60))

_A100 = Efficiency(
    gemm=GemmFit(0.41e-6, 0.939, 0.755, 3.7, 3.37e-6, 1.15e-6, 6.7e12, 0.075, "a100_sxm"),
    # head_dim 64 isn't in A100's table: Hopper's factor.
    prefill=PrefillFit(6.5e-6, 1.41e12, 1.75e12, 0.596, 0.70, "a100_sxm"),
    # FlashAttention-2 needs its own split rule: this fit erred by 15 % (median).
    decode=DecodeFit(11.5e-6, 0.68, 4.2e-6, 4.8e-6, 1.11, 0.0044, 3.9e12, 0.95, "a100_sxm"),
    launch=LaunchFit(2.7e-6, 1.4e-6, 44e-6, "a100_sxm"),
    stream=1815 / 2039,  # middle of 1730-1900 GB/s read
)

_H100 = Efficiency(
    gemm=GemmFit(1.99e-6, 0.860, 0.866, math.inf, 0.70e-6, 2.09e-6, 18.4e12, 0.059, "h100_sxm"),
    prefill=PrefillFit(11.1e-6, 1.78e12, 1.92e12, 0.732, 0.70, "h100_sxm"),
    decode=DecodeFit(8.2e-6, 0.9075, 3.2e-6, 1.4e-6, 1.11, 0.0044, 3.9e12, 0.95, "h100_sxm"),
    # The gaps are H200's (same die and host generation); the eager floor is H100's own.
    launch=LaunchFit(2.5e-6, 1.36e-6, 20e-6, "h200_sxm", measured=False),
    stream=2750 / 3350,
)

_H200 = Efficiency(
    # H100's fit stands at 0.8 of the range its weight streams span (77-89 %); 0.82 is the same
    # place in H200's range of 70-85 %. The form itself was never fitted on H200.
    gemm=replace(_H100.gemm, memory=0.82, measured=False),
    prefill=PrefillFit(10.9e-6, 1.81e12, 2.24e12, 0.719, 0.69, "h200_sxm"),
    # H100's share of HBM would exceed what any read reached (3.89-4.1 TB/s): capped there.
    decode=replace(_H100.decode, memory=4100 / 4800, measured=False),
    launch=LaunchFit(2.5e-6, 1.36e-6, 20e-6, "h200_sxm"),
    stream=3994 / 4800,  # middle of 3888-4100 GB/s read
)


def borrow(lender: Efficiency, lender_spec: GpuSpec, spec: GpuSpec, stream: float) -> Efficiency:
    """Return `lender`'s fits for an unmeasured part that streams `stream` of its bandwidth.

    Shares of the tensor rate carry over, shares of HBM bandwidth in proportion to what plain
    streaming reaches. Absolute bandwidths inside the chip grow with SMs times clock, or with the
    tensor rate for GEMM operands (chips are balanced so), and no prefill term may exceed the
    share of HBM it reached on the lender.
    """
    clock = spec.num_sms * spec.boost_hz / (lender_spec.num_sms * lender_spec.boost_hz)
    tensor = spec.flops_per_s["bf16"] / lender_spec.flops_per_s["bf16"]
    gemm, prefill, decode = lender.gemm, lender.prefill, lender.decode
    streamed = stream / lender.stream
    inside = min(clock, spec.hbm_bytes_per_s / lender_spec.hbm_bytes_per_s)
    return Efficiency(
        gemm=replace(
            gemm,
            memory=gemm.memory * streamed,
            l2_bytes_per_s=gemm.l2_bytes_per_s * tensor,
            measured=False,
        ),
        prefill=replace(
            prefill,
            query_bytes_per_s=prefill.query_bytes_per_s * inside,
            kv_write_bytes_per_s=prefill.kv_write_bytes_per_s * inside,
            measured=False,
        ),
        decode=replace(
            decode,
            memory=decode.memory * streamed,
            warm_bytes_per_s=decode.warm_bytes_per_s * clock,
            measured=False,
        ),
        # Launching is the host's work: the newest host measured stands for all.
        launch=replace(_H200.launch, measured=False),
        stream=stream,
        stream_measured=False,
    )


_L40S_STREAM = 822 / 864  # middle of 796-847 GB/s read

EFFICIENCIES: dict[str, Efficiency] = {
    "a100_sxm": _A100,
    "h100_sxm": _H100,
    "h200_sxm": _H200,
    "b200_sxm": borrow(_H100, GPUS["h100_sxm"], GPUS["b200_sxm"], _H100.stream),
    # Ada and the RTX Blackwell parts have Ampere's mma.sync and FlashAttention-2 kernels, not
    # Hopper's warp-group or B200's tensor-memory ones: A100 is their nearest relative.
    "l40s": replace(
        borrow(_A100, GPUS["a100_sxm"], GPUS["l40s"], _L40S_STREAM), stream_measured=True
    ),
    "rtx_4090": borrow(_A100, GPUS["a100_sxm"], GPUS["rtx_4090"], _L40S_STREAM),
    "rtx_pro_6000": borrow(_A100, GPUS["a100_sxm"], GPUS["rtx_pro_6000"], _L40S_STREAM),
}

_RELATIVES = {"ampere": "a100_sxm", "ada": "l40s", "hopper": "h100_sxm"}
_WARP_GROUPS = (9, 10)
"""Major compute capabilities whose kernels are Hopper's or their successors'."""


def efficiency_of(gpu: GpuSpec) -> Efficiency:
    """Return a GPU's entry of the table, or what a GPU that isn't in it borrows.

    The lender is the nearest relative: of its architecture, or for a newer one the part whose
    kernels it runs.
    """
    known = EFFICIENCIES.get(gpu.name)
    if known is not None:
        return known
    newer = "h100_sxm" if gpu.compute_capability[0] in _WARP_GROUPS else "l40s"
    lender = _RELATIVES.get(gpu.architecture, newer)
    return borrow(EFFICIENCIES[lender], GPUS[lender], gpu, EFFICIENCIES[lender].stream)
