"""NVIDIA H200 SXM 141 GB."""

from hwmodels.spec import GpuSpec, NodeSpec

H200_SXM = GpuSpec(
    name="h200_sxm",
    title="NVIDIA H200 SXM 141 GB",
    architecture="hopper",
    compute_capability=(9, 0),
    flops_per_s={"bf16": 989e12, "fp8": 1978e12, "int8": 1978e12, "tf32": 495e12},
    hbm_bytes_per_s=4800e9,
    memory_bytes=141 * 2**30,
    visible_memory_bytes=150_700_000_000,
    num_sms=132,
    l2_bytes=50 * 2**20,
    l2_segments=2,
    boost_hz=1980e6,
    node=NodeSpec(num_gpus=8, link="nvlink4", host_link="pcie5", source="HGX H200 datasheet"),
    power_w=700.0,
    idle_power_w=128.0,
    sources={
        "": "NVIDIA H200 datasheet",
        "num_sms": "same GH100 die as H100 SXM",
        "l2_bytes": "same die as H100; knee measured at 40-48 MB",
        "l2_segments": "same die as H100",
        "boost_hz": "public micro-benchmark logs (gpu-benches, mt4g)",
        "visible_memory_bytes": "serving runs that are limited by KV capacity: 150.7e9 bytes",
        "power_w": "NVIDIA H200 datasheet, SXM: max TDP, up to 700 W",
        "idle_power_w": "assumed: 78 W bare (public nvidia-smi listings) plus the 50 W that a "
        "CUDA context adds on H100 (arXiv 2605.23918)",
    },
    assumed=frozenset({"idle_power_w"}),
)
