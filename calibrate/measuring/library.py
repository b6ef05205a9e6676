"""Products that only a library has: what engines call for FP8."""

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from kernels.case import Case, Kernel, Shape

NAME = "matmul_fp8_library"


def fp8_library() -> "Kernel":
    """Return `torch._scaled_mm` with a scale a tensor, as an entry of the catalogue."""
    from kernels.case import Kernel

    return Kernel(
        name=NAME,
        make_case=_make_case,
        shapes=({"m": 16, "n": 16, "k": 32},),
        dtypes=("fp8",),
        interpreted=("fp8",),
        compile_specs=lambda _: (),
    )


def _make_case(shape: "Shape", _dtype: str, device: "torch.device", seed: int) -> "Case":
    """Make a product; axes m, n, k, the last two divisible by 16."""
    import torch

    from kernels.case import Case, poisoned

    m, n, k = shape["m"], shape["n"], shape["k"]
    random = torch.Generator(device).manual_seed(seed)
    a = torch.randn(m, k, generator=random, device=device).to(torch.float8_e4m3fn)
    weight = torch.randn(n, k, generator=random, device=device).to(torch.float8_e4m3fn)
    out = poisoned((m, n), torch.bfloat16, device)
    one = torch.ones((), device=device)
    launch = partial(
        torch._scaled_mm, a, weight.T, scale_a=one, scale_b=one, out_dtype=torch.bfloat16, out=out
    )
    return Case(
        launch=launch,
        outputs=(out,),
        oracle=lambda: (a.double() @ weight.T.double(),),
        tolerance=8e-3,
        moved_bytes=float(m * k + n * k + 2 * m * n),
        flops=2.0 * m * n * k,
    )
