"""PCI Express slots of sixteen lanes."""

from hwmodels.spec import LinkSpec

PCIE4 = LinkSpec(
    name="pcie4",
    kind="pcie",
    bytes_per_s=31.5e9,
    sustained_bytes_per_s=25e9,
    fully_connected=False,
    sources={
        "bytes_per_s": "PCI Express 4.0: 16 lanes of 16 GT/s, 128b/130b coding",
        "sustained_bytes_per_s": "common figure for pinned copies, unmeasured here: 25 GB/s",
        "fully_connected": "transfers between GPUs share root ports",
    },
    assumed=frozenset({"sustained_bytes_per_s"}),
)

PCIE5 = LinkSpec(
    name="pcie5",
    kind="pcie",
    bytes_per_s=63e9,
    sustained_bytes_per_s=54e9,
    fully_connected=False,
    sources={
        "bytes_per_s": "PCI Express 5.0: 16 lanes of 32 GT/s, 128b/130b coding",
        "sustained_bytes_per_s": "reported copies on Gen5: device to host 54.18, host to device "
        "55.44 GB/s",
        "fully_connected": "transfers between GPUs share root ports",
    },
)
