"""NVIDIA GeForce RTX 4090 24 GB."""

from hwmodels.spec import GpuSpec, NodeSpec

RTX_4090 = GpuSpec(
    name="rtx_4090",
    title="NVIDIA GeForce RTX 4090 24 GB",
    architecture="ada",
    compute_capability=(8, 9),
    flops_per_s={"bf16": 165.2e12, "fp8": 330.3e12, "int8": 660.6e12, "tf32": 82.6e12},
    hbm_bytes_per_s=1008e9,
    memory_bytes=24 * 2**30,
    visible_memory_bytes=25_250_627_584,
    num_sms=128,
    l2_bytes=72 * 2**20,
    l2_segments=1,
    boost_hz=2520e6,
    node=NodeSpec(
        num_gpus=1,
        link="pcie4",
        host_link="pcie4",
        source="consumer card: one a machine assumed; PCIe Gen4 x16",
    ),
    power_w=450.0,
    idle_power_w=65.0,
    sources={
        "": "NVIDIA Ada GPU architecture whitepaper, RTX 4090",
        "flops_per_s": "NVIDIA Ada whitepaper, dense, FP32 accumulation "
        "(half the FP16-accumulation rate)",
        "l2_segments": "assumed: as L40 (same AD102 die), no far plateau seen",
        "visible_memory_bytes": "engine run on this card: 25,250,627,584 bytes reported",
        "power_w": "NVIDIA GeForce RTX 4090 specifications: total graphics power",
        "idle_power_w": "assumed: median of 60-87 W that public nvidia-smi listings show at full "
        "clocks without load",
    },
    assumed=frozenset({"idle_power_w", "l2_segments"}),
)
