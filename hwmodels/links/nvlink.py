"""NVLink generations behind an NVSwitch."""

from hwmodels.spec import LinkSpec

_LARGE_SEND = "vidur point-to-point table, one node (large messages)"

NVLINK3 = LinkSpec(
    name="nvlink3",
    kind="nvlink",
    bytes_per_s=300e9,
    sustained_bytes_per_s=288e9,
    fully_connected=True,
    sources={
        "bytes_per_s": "NVIDIA A100 datasheet: NVLink 600 GB/s, both directions together",
        "sustained_bytes_per_s": f"{_LARGE_SEND}, A100: 288 GB/s",
        "fully_connected": "HGX A100 system: NVSwitch",
    },
)

NVLINK4 = LinkSpec(
    name="nvlink4",
    kind="nvlink",
    bytes_per_s=450e9,
    sustained_bytes_per_s=359e9,
    fully_connected=True,
    sources={
        "bytes_per_s": "NVIDIA H100 datasheet: NVLink 900 GB/s, both directions together",
        "sustained_bytes_per_s": "H100 send/recv in one node: 359 GB/s; the published file "
        "equals A100's in part, so the figure is weak",
        "fully_connected": "HGX H100 system: NVSwitch",
    },
)

NVLINK5 = LinkSpec(
    name="nvlink5",
    kind="nvlink",
    bytes_per_s=900e9,
    sustained_bytes_per_s=718e9,
    fully_connected=True,
    sources={
        "bytes_per_s": "NVIDIA HGX B200 datasheet: NVLink 1.8 TB/s, both directions together",
        "sustained_bytes_per_s": "assumed: the share of the raw rate that NVLink 4 reaches "
        "(359 of 450 GB/s)",
        "fully_connected": "HGX B200 system: NVSwitch",
    },
    assumed=frozenset({"sustained_bytes_per_s"}),
)
