"""Links between GPUs: one file a family, one line here."""

from hwmodels.links.nvlink import NVLINK3, NVLINK4, NVLINK5
from hwmodels.links.pcie import PCIE4, PCIE5
from hwmodels.spec import LinkSpec

LINKS: dict[str, LinkSpec] = {
    "nvlink3": NVLINK3,
    "nvlink4": NVLINK4,
    "nvlink5": NVLINK5,
    "pcie4": PCIE4,
    "pcie5": PCIE5,
}
