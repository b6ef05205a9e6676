"""NVIDIA RTX PRO 6000 Blackwell 96 GB."""

from hwmodels.spec import GpuSpec, NodeSpec

RTX_PRO_6000 = GpuSpec(
    name="rtx_pro_6000",
    title="NVIDIA RTX PRO 6000 Blackwell 96 GB",
    architecture="blackwell",
    compute_capability=(12, 0),
    flops_per_s={
        "bf16": 503.8e12,
        "fp8": 1007.6e12,
        "int8": 1007.6e12,
        "fp4": 2015.2e12,
        "tf32": 251.9e12,
    },
    hbm_bytes_per_s=1792e9,
    memory_bytes=96 * 2**30,
    visible_memory_bytes=102_000_000_000,
    num_sms=188,
    l2_bytes=128 * 2**20,
    l2_segments=1,
    boost_hz=2617e6,
    node=NodeSpec(
        num_gpus=8, link="pcie5", host_link="pcie5", source="PCIe Gen5 x16; eight a server assumed"
    ),
    sources={
        "": "NVIDIA RTX Blackwell PRO GPU architecture whitepaper",
        "l2_segments": "assumed: one",
        "visible_memory_bytes": "serving runs on this card: 102.0e9 bytes visible",
    },
    assumed=frozenset({"l2_segments"}),
)
