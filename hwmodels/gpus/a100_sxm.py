"""NVIDIA A100 SXM 80 GB."""

from hwmodels.spec import GpuSpec, NodeSpec

A100_SXM = GpuSpec(
    name="a100_sxm",
    title="NVIDIA A100 SXM 80 GB",
    architecture="ampere",
    compute_capability=(8, 0),
    flops_per_s={"bf16": 312e12, "int8": 624e12, "tf32": 156e12},
    hbm_bytes_per_s=2039e9,
    memory_bytes=80 * 2**30,
    visible_memory_bytes=int(79.15 * 2**30),
    num_sms=108,
    l2_bytes=40 * 2**20,
    l2_segments=2,
    boost_hz=1410e6,
    node=NodeSpec(num_gpus=8, link="nvlink3", host_link="pcie4", source="HGX A100 datasheet"),
    power_w=400.0,
    idle_power_w=80.0,
    sources={
        "": "NVIDIA A100 80GB datasheet",
        "num_sms": "public micro-benchmark logs (gpu-benches, mt4g)",
        "l2_bytes": "public micro-benchmark logs (gpu-benches, mt4g)",
        "l2_segments": "public micro-benchmark logs (gpu-benches, mt4g)",
        "boost_hz": "public micro-benchmark logs (gpu-benches, mt4g)",
        "visible_memory_bytes": "engine start-up logs: 79.15 GiB",
        "flops_per_s": "NVIDIA A100 datasheet, dense; no FP8 tensor cores",
        "power_w": "NVIDIA A100 80GB datasheet, SXM: max TDP",
        "idle_power_w": "assumed: as measured on an A100 PCIe of 300 W, idle with a CUDA context "
        "(arXiv 2605.23918, 80.0 W; bare 53.7 W, SXM parts list 50-68 W)",
    },
    assumed=frozenset({"idle_power_w"}),
)
