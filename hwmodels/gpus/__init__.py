"""GPU types: one file a part, one line here."""

from hwmodels.gpus.a100_sxm import A100_SXM
from hwmodels.gpus.b200_sxm import B200_SXM
from hwmodels.gpus.h100_sxm import H100_SXM
from hwmodels.gpus.h200_sxm import H200_SXM
from hwmodels.gpus.l40s import L40S
from hwmodels.gpus.rtx_4090 import RTX_4090
from hwmodels.gpus.rtx_pro_6000 import RTX_PRO_6000
from hwmodels.spec import GpuSpec

GPUS: dict[str, GpuSpec] = {
    "a100_sxm": A100_SXM,
    "h100_sxm": H100_SXM,
    "h200_sxm": H200_SXM,
    "b200_sxm": B200_SXM,
    "l40s": L40S,
    "rtx_4090": RTX_4090,
    "rtx_pro_6000": RTX_PRO_6000,
}
