"""Checks of a kernel's arguments, before anything is launched."""

from collections.abc import Collection, Sequence

import torch

from kernels.errors import KernelInputError

MAX_ROW_STRIDE = 2**23
"""Times a tile's 256 rows this is 2^31."""


def check(condition: bool, message: str) -> None:
    """Raise `KernelInputError` with `message` unless `condition` holds."""
    if not condition:
        raise KernelInputError(message)


def check_tensor(
    name: str,
    tensor: torch.Tensor,
    shape: Sequence[int | str],
    dtypes: Collection[torch.dtype],
    device: torch.device | None = None,
) -> None:
    """Check one tensor's rank, sizes, dtype, device and that its last axis is contiguous.

    Args:
        name: how messages call it.
        shape: a number is required exactly; a word names an axis of any size.
        dtypes: those accepted.
        device: where it must be; None: anywhere.

    Raises:
        KernelInputError: it is not so.
    """
    wanted = "[" + ", ".join(str(size) for size in shape) + "]"
    found = list(tensor.shape)
    fits = len(found) == len(shape) and all(
        isinstance(want, str) or want == have for want, have in zip(shape, found, strict=True)
    )
    check(fits, f"{name} has shape {found}; {wanted} is needed")
    names = ", ".join(sorted(_short(dtype) for dtype in dtypes))
    check(tensor.dtype in dtypes, f"{name} is {_short(tensor.dtype)}; {names} is needed")
    check(
        device is None or tensor.device == device,
        f"{name} is on {tensor.device}; it must be on {device} like the rest",
    )
    check(
        tensor.numel() == 0 or tensor.dim() == 0 or 1 in (tensor.stride(-1), tensor.shape[-1]),
        f"{name} is strided along its last axis; make it contiguous",
    )


def check_row_strides(**tensors: torch.Tensor) -> None:
    """Check that offsets within a tile of up to 256 rows or columns fit 32 bits, as kernels count.

    Raises:
        KernelInputError: a row (or column) starts too far from the one before.
    """
    for name, tensor in tensors.items():
        steps = zip(tensor.shape, tensor.stride(), strict=True)
        stride = max((stride for size, stride in steps if size > 1), default=0)
        check(
            stride < MAX_ROW_STRIDE,
            f"{name} has a stride of {stride} elements; less than {MAX_ROW_STRIDE} is needed",
        )


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
