"""NVIDIA L40S 48 GB."""

from hwmodels.spec import GpuSpec, NodeSpec

L40S = GpuSpec(
    name="l40s",
    title="NVIDIA L40S 48 GB",
    architecture="ada",
    compute_capability=(8, 9),
    flops_per_s={"bf16": 362e12, "fp8": 733e12, "int8": 733e12, "tf32": 183e12},
    hbm_bytes_per_s=864e9,
    memory_bytes=48 * 2**30,
    visible_memory_bytes=int(44.42 * 2**30),
    num_sms=142,
    l2_bytes=96 * 2**20,
    l2_segments=1,
    boost_hz=2520e6,
    node=NodeSpec(
        num_gpus=8,
        link="pcie4",
        host_link="pcie4",
        source="L40S datasheet: PCIe Gen4 x16; eight a server assumed",
    ),
    power_w=350.0,
    idle_power_w=102.1,
    sources={
        "": "NVIDIA L40S datasheet",
        "num_sms": "NVIDIA Ada whitepaper, AD102 with 142 SMs",
        "boost_hz": "NVIDIA L40S datasheet",
        "l2_bytes": "public micro-benchmark logs (gpu-benches, mt4g)",
        "l2_segments": "public micro-benchmark logs (gpu-benches, mt4g): no far plateau seen",
        "visible_memory_bytes": "one PyTorch out-of-memory report, total 44.42 GiB "
        "(github.com/stepfun-ai/Step-Video-T2V/issues/8); ECC takes the rest of 48",
        "power_w": "NVIDIA L40S datasheet: max power consumption",
        "idle_power_w": "measured idle with a CUDA context, arXiv 2605.23918: 102.1 W (bare 35.6 "
        "W)",
    },
)
