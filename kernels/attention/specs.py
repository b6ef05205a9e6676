"""Specialisations of attention kernels as their launchers make them."""

from collections.abc import Mapping
from typing import Any

from kernels.case import CompileSpec

_LENGTHS = ("block_tables", "context_lens", "query_starts")
_FP32 = ("sums", "stats")
_UNALIGNED = ("table_stride", "splits", "scale_stride")
"""Numbers that a launch cannot be relied on to give as multiples of 16."""


def attention_spec(
    label: str,
    function: Any,
    pointers: Mapping[str, str],
    constexprs: Mapping[str, Any],
    *,
    warps: int,
    stages: int,
) -> CompileSpec:
    """Return the specialisation with types of `pointers` given and the others' known by name."""
    types = {**dict.fromkeys(_LENGTHS, "*i32"), **dict.fromkeys(_FP32, "*fp32"), "scale": "fp32"}
    types |= pointers
    names = [name for name in function.arg_names if name not in constexprs]
    signature = {name: types.get(name, "i32") for name in names}
    aligned = {name for name in names if name not in _UNALIGNED and signature[name] != "fp32"}
    return CompileSpec(
        label=label,
        function=function,
        signature=signature,
        constexprs=constexprs,
        aligned=frozenset(aligned),
        num_warps=warps,
        num_stages=stages,
    )
