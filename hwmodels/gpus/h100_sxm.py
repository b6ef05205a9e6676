"""NVIDIA H100 SXM 80 GB."""

from hwmodels.spec import GpuSpec, NodeSpec

H100_SXM = GpuSpec(
    name="h100_sxm",
    title="NVIDIA H100 SXM 80 GB",
    architecture="hopper",
    compute_capability=(9, 0),
    flops_per_s={"bf16": 989e12, "fp8": 1978e12, "int8": 1978e12, "tf32": 495e12},
    hbm_bytes_per_s=3350e9,
    memory_bytes=80 * 2**30,
    visible_memory_bytes=int(79.1 * 2**30),
    num_sms=132,
    l2_bytes=50 * 2**20,
    l2_segments=2,
    boost_hz=1980e6,
    node=NodeSpec(num_gpus=8, link="nvlink4", host_link="pcie5", source="HGX H100 datasheet"),
    power_w=700.0,
    idle_power_w=121.7,
    sources={
        "": "NVIDIA H100 SXM datasheet",
        "num_sms": "public micro-benchmark logs (gpu-benches, mt4g)",
        "l2_bytes": "public micro-benchmark logs (gpu-benches, mt4g)",
        "l2_segments": "public micro-benchmark logs (gpu-benches, mt4g)",
        "boost_hz": "public micro-benchmark logs (gpu-benches, mt4g)",
        "visible_memory_bytes": "about 79.1 GiB, inferred from engine start-up logs",
        "flops_per_s": "NVIDIA H100 SXM datasheet, dense",
        "power_w": "NVIDIA H100 SXM datasheet: max TDP, up to 700 W",
        "idle_power_w": "measured idle with a CUDA context, arXiv 2605.23918: 121.7 W (bare 71.8 "
        "W)",
    },
)
