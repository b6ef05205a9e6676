"""What a `config.json` may hold under the keys that are read: checked once, before any use."""

from collections.abc import Callable
from typing import Any

from twin.errors import InputError

MAX_SIZE = 10**9
"""Largest number taken for any width, count or context length; a slip of the pen is beyond it."""
MAX_LAYERS = 10_000

_Check = Callable[[object], bool]


def is_whole(value: object, least: int = 0, most: int = MAX_SIZE) -> bool:
    """Whether `value` is a whole number from `least` to `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_number_or_flags(value: object) -> bool:
    return is_whole(value, least=1) or isinstance(value, list)


def _is_share(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(is_whole(v, least=1) for v in value)


def _are_sections(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(v, dict) for v in value.values())


_WHOLE = (is_whole, f"a whole number from 0 to {MAX_SIZE:,}")
_STEP = (lambda value: is_whole(value, least=1), f"a whole number from 1 to {MAX_SIZE:,}")
_SIZES: tuple[str, ...] = (
    "first_k_dense_replace", "max_window_layers", "moe_intermediate_size", "n_shared_experts",
    "num_shared_experts", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
)  # fmt: skip
_CHECKS: dict[str, tuple[_Check, str]] = {
    **dict.fromkeys(_SIZES, _WHOLE),
    "decoder_sparse_step": _STEP,
    "full_attention_interval": _STEP,
    "interleave_moe_layer_step": _WHOLE,
    "mlp_only_layers": (lambda value: isinstance(value, list), "a list of layers"),
    "moe_layer_freq": (_is_number_or_flags, "a whole number above 0 or a list"),
    "partial_rotary_factor": (_is_share, "a number from 0 to 1"),
}
# Families also write text or lists under these; where it is a number it must be a sensible one.
_IF_NUMBER = (
    "attention_chunk_size", "moe_num_experts", "moe_topk", "n_routed_experts", "num_experts",
    "num_experts_per_tok", "num_experts_per_token", "num_local_experts",
    "shared_expert_intermediate_size", "shared_intermediate_size", "sliding_window",
    "sliding_window_pattern", "_sliding_window_pattern", "top_k_experts",
)  # fmt: skip
_QUANTIZATION: dict[str, tuple[_Check, str]] = {
    "weight_block_size": (_is_pair, "[rows, columns]"),
    "config_groups": (_are_sections, "an object of groups"),
}
_GROUP_KEYS = ("group_size", "q_group_size")
_GROUP = (lambda value: is_whole(value, least=-1), "a number of weights, or -1 for a whole row")


def check_values(config: dict[str, Any], where: str) -> None:
    """Check the optional keys of a config; a key that is absent or null passes.

    Raises:
        InputError: names the first key whose value cannot be used.
    """
    _check(config, _CHECKS, where)
    for key in _IF_NUMBER:
        value = config.get(key)
        if isinstance(value, (int, float)) and not is_whole(value, least=-1):
            raise _refused(key, value, f"a whole number up to {MAX_SIZE:,}", where)


def check_quantization(section: object, where: str) -> None:
    """Check the numbers in a `quantization_config`.

    Raises:
        InputError: names the first key whose value cannot be used.
    """
    if not isinstance(section, dict):
        return
    where = f"{where}, quantization_config"
    _check(section, _QUANTIZATION, where)
    groups = list((section.get("config_groups") or {}).values())
    for group in groups:
        _check(group, {"weights": (lambda value: isinstance(value, dict), "an object")}, where)
    for part in (section, *(group.get("weights") or {} for group in groups)):
        _check(part, dict.fromkeys(_GROUP_KEYS, _GROUP), where)
        _check(part, {"block_structure": (_is_pair, "[rows, columns]")}, where)


def _check(config: dict[str, Any], checks: dict[str, tuple[_Check, str]], where: str) -> None:
    for key, (check, right) in checks.items():
        value = config.get(key)
        if value is not None and not check(value):
            raise _refused(key, value, right, where)


def _refused(key: str, value: object, right: str, where: str) -> InputError:
    shown = repr(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge number"
    return InputError(f"{key} is {shown[:60]}", where=where, remedy=f"it must be {right}")
