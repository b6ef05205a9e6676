"""A layer's products with random weights, in the number formats that a policy may ask for."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch


class Product(Protocol):
    """out = x · W, as launches that may be captured in a CUDA graph."""

    def __call__(self, x: "torch.Tensor", out: "torch.Tensor") -> None:
        """Launch it; x [tokens, k], out [tokens, n], both contiguous."""
        ...


class DenseProduct:
    """16-bit weights [n, k], as checkpoints keep them."""

    def __init__(self, weight: "torch.Tensor") -> None:
        self._transposed = weight.T

    def __call__(self, x: "torch.Tensor", out: "torch.Tensor") -> None:
        """Launch it."""
        import torch

        torch.matmul(x, self._transposed, out=out)


class Fp8Product:
    """FP8 weights and inputs, one scale a tensor.

    Args:
        weight: [n, k].
        quantises: its input is quantised by a kernel of its own, as that of attention's output.
            Else engines fuse that into the kernel before; its input is then made beforehand.
        most_tokens: rows of the largest input.
    """

    def __init__(self, weight: "torch.Tensor", *, quantises: bool, most_tokens: int) -> None:
        import torch

        self._transposed = weight.to(torch.float8_e4m3fn).T
        self._quantises = quantises
        made = torch.randn(most_tokens, weight.shape[1], device=weight.device, dtype=weight.dtype)
        self._input = made.to(torch.float8_e4m3fn)
        self._one = torch.ones((), device=weight.device)

    def __call__(self, x: "torch.Tensor", out: "torch.Tensor") -> None:
        """Launch it."""
        import torch

        given = self._input[: x.shape[0]]
        if self._quantises:
            given.copy_(x)
        torch._scaled_mm(
            given, self._transposed, scale_a=self._one, scale_b=self._one,
            out_dtype=out.dtype, out=out,
        )  # fmt: skip


class WeightOnlyProduct:
    """4-bit weights, expanded to 16 bits as they are multiplied."""

    def __init__(self, weight: "torch.Tensor", group: int) -> None:
        from kernels.gemm.quantised_weight import quantise_weight

        self._packed, self._scales = quantise_weight(weight.T.contiguous(), bits=4, group=group)
        self._group = group

    def __call__(self, x: "torch.Tensor", out: "torch.Tensor") -> None:
        """Launch it."""
        from kernels.gemm.weight_only import matmul_weight_only

        matmul_weight_only(x, self._packed, self._scales, bits=4, group=self._group, out=out)


def random_weight(
    n: int, k: int, dtype: "torch.dtype", random: "torch.Generator"
) -> "torch.Tensor":
    """Return [n, k] of a size that keeps activations near 1."""
    import torch

    drawn = torch.randn(n, k, generator=random, device=random.device, dtype=dtype)
    return drawn.mul_(k**-0.5)
