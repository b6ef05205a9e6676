"""Number formats of kernels by name, and how near to the oracle each can come."""

import torch

from kernels.errors import KernelInputError

DTYPES: dict[str, torch.dtype] = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "fp8": torch.float8_e4m3fn,
    "int8": torch.int8,
}
FLOATS = (torch.float16, torch.bfloat16, torch.float32)

# Relative L2 error of a row: storage rounds to 11, 8 and 24 bits.
_TOLERANCES = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-6}


def torch_dtype(name: str) -> torch.dtype:
    """Return the dtype of a name.

    Raises:
        KernelInputError: there is none of that name.
    """
    if name not in DTYPES:
        raise KernelInputError(f"unknown dtype {name!r}; known are {', '.join(DTYPES)}")
    return DTYPES[name]


def tolerance(name: str) -> float:
    """Return the relative error that a right kernel of this storage dtype keeps below."""
    return _TOLERANCES[name]
