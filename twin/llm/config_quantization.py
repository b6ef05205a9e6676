"""How a checkpoint's `quantization_config` stores its weights."""

from typing import Any

from twin.errors import InputError

Format = tuple[str, tuple[int, int] | None, tuple[str, ...], tuple[str, ...]]


def checkpoint_format(section: object, where: str = "config.json") -> Format:
    """Return (dtype, scale block, matrix roles kept in bf16, notes).

    Reads FP8 (per tensor or in blocks), FBGEMM FP8, MXFP4, compressed-tensors, GPTQ, AWQ,
    bitsandbytes and ModelOpt sections.

    Raises:
        InputError: a method or width that has no arithmetic here.
    """
    if not isinstance(section, dict) or not section:
        return "bf16", None, (), ()
    method = str(section.get("quant_method") or section.get("quant_algo") or "").lower()
    if method in ("fp8", "fbgemm_fp8"):
        return "fp8", _pair(section.get("weight_block_size")), _kept(section), _kv_notes(section)
    if method == "mxfp4":
        return "mxfp4", None, ("attention", "mlp", "shared_expert"), ()
    if method in ("compressed-tensors", "compressed_tensors"):
        return _compressed_tensors(section, where)
    if method in ("gptq", "awq", "auto-round", "bitsandbytes"):
        return _integer(section, method, where)
    algorithm = str(section.get("quant_algo") or method).upper()
    if algorithm.startswith("FP8"):
        return "fp8", None, _kept(section), _kv_notes(section)
    if "FP4" in algorithm or algorithm == "MIXED_PRECISION":
        note = f"{algorithm}: taken as 4-bit floats with one 8-bit scale for 16"
        return "mxfp4", (1, 16), _kept(section), (note, *_kv_notes(section))
    raise InputError(
        f"unknown quantisation {method or section!r}",
        where=f"{where}, quantization_config",
        remedy="fp8, mxfp4, compressed-tensors, gptq, awq, bitsandbytes and modelopt are read",
    )


def _compressed_tensors(section: dict[str, Any], where: str) -> Format:
    groups = section.get("config_groups")
    first: dict[str, Any] = {}
    if isinstance(groups, dict) and groups:
        first = next(iter(groups.values()))
    weights = first.get("weights") or {}
    bits, kind = weights.get("num_bits"), weights.get("type")
    kept = _kept(section)
    if bits == 8:
        block = _pair(weights.get("block_structure"))
        return ("fp8" if kind == "float" else "int8"), block, kept, ()
    if bits == 4:
        group = weights.get("group_size") or 128
        block = (1, int(group)) if group > 0 else None
        return ("mxfp4" if kind == "float" else "int4"), block, kept, ()
    raise InputError(
        f"weights of {bits!r} bits and type {kind!r}",
        where=f"{where}, quantization_config.config_groups",
        remedy="8 or 4 bits are read",
    )


def _integer(section: dict[str, Any], method: str, where: str) -> Format:
    bits = section.get("bits") or section.get("w_bit")
    if method == "bitsandbytes":
        bits = 4 if section.get("load_in_4bit") else 8
    if bits not in (4, 8):
        raise InputError(
            f"{method} weights of {bits!r} bits",
            where=f"{where}, quantization_config",
            remedy="4 or 8 bits are read",
        )
    group = section.get("group_size") or section.get("q_group_size") or 128
    if bits == 8:
        return "int8", None, _kept(section), ()
    return "int4", ((1, int(group)) if group > 0 else None), _kept(section), ()


def _kept(section: dict[str, Any]) -> tuple[str, ...]:
    """Return roles whose matrices a checkpoint leaves in bf16, from its list of exceptions."""
    listed: list[str] = []
    for key in ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"):
        value = section.get(key)
        if isinstance(value, list):
            listed += [str(entry).lower() for entry in value]
    kept = []
    if any("self_attn" in entry for entry in listed):
        kept.append("attention")
    if any("shared_expert" in entry for entry in listed):
        kept.append("shared_expert")
    return tuple(kept)


def _kv_notes(section: dict[str, Any]) -> tuple[str, ...]:
    if str(section.get("kv_cache_quant_algo") or "").upper() != "FP8":
        return ()
    return ("the checkpoint carries FP8 KV scales: set kv_cache_dtype fp8 to use them",)


def _pair(value: object) -> tuple[int, int] | None:
    if isinstance(value, list) and len(value) == 2:
        return int(value[0]), int(value[1])
    return None
