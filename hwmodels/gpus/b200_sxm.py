"""NVIDIA B200 SXM 180 GB."""

from hwmodels.spec import GpuSpec, NodeSpec

B200_SXM = GpuSpec(
    name="b200_sxm",
    title="NVIDIA B200 SXM 180 GB",
    architecture="blackwell",
    compute_capability=(10, 0),
    flops_per_s={"bf16": 2250e12, "fp8": 4500e12, "int8": 4500e12, "fp4": 9000e12, "tf32": 1100e12},
    hbm_bytes_per_s=7700e9,
    memory_bytes=180 * 2**30,
    visible_memory_bytes=int(0.99 * 180 * 2**30),
    num_sms=148,
    l2_bytes=int(126.5 * 2**20),
    l2_segments=2,
    boost_hz=1965e6,
    node=NodeSpec(num_gpus=8, link="nvlink5", host_link="pcie5", source="HGX B200 datasheet"),
    power_w=1000.0,
    idle_power_w=190.0,
    sources={
        "": "NVIDIA HGX B200 datasheet",
        "hbm_bytes_per_s": "HGX B200 datasheet, lower of the published 7.7 and 8.0 TB/s",
        "memory_bytes": "HGX B200 datasheet, lower of the published 180 and 192 GB",
        "visible_memory_bytes": "assumed: 0.99 of the listed GiB, as on A100 and H100",
        "num_sms": "commonly published, unmeasured here",
        "boost_hz": "commonly published, about 1965 MHz, unmeasured here",
        "l2_bytes": "public micro-benchmark logs (gpu-benches, mt4g)",
        "l2_segments": "assumed: two dies",
        "power_w": "NVIDIA HGX B200 datasheet: max TDP, up to 1000 W",
        "idle_power_w": "assumed: 140 W bare (public nvidia-smi listings) plus the 50 W that a "
        "CUDA context adds on H100 (arXiv 2605.23918)",
    },
    assumed=frozenset({"idle_power_w", "visible_memory_bytes", "l2_segments"}),
)
