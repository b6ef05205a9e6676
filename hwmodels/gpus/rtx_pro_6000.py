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
    power_w=600.0,
    idle_power_w=81.0,
    sources={
        "": "NVIDIA RTX Blackwell PRO GPU architecture whitepaper",
        "l2_segments": "assumed: one",
        "visible_memory_bytes": "serving runs on this card: 102.0e9 bytes visible",
        "power_w": "NVIDIA RTX PRO 6000 Blackwell datasheet, Workstation and Server Edition:"
        " max power consumption",
        "idle_power_w": "assumed: the 81 W that public nvidia-smi listings show at full clocks "
        "without load",
    },
    assumed=frozenset({"idle_power_w", "l2_segments"}),
)
