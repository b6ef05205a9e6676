"""What kind each layer of a Hugging Face config is: dense or experts, full or windowed."""

from typing import Any

from twin.errors import InputError
from twin.llm.arch import MoeArch

_WINDOWED = frozenset({"sliding_attention", "chunked_attention", "local_attention"})


def moe_arch(config: dict[str, Any], num_layers: int, where: str) -> MoeArch | None:
    """Return the experts of a config, None if it has none."""
    experts = _first(
        config, "n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts"
    )
    if not experts or experts < 2:
        return None
    chosen = _first(
        config, "num_experts_per_tok", "num_experts_per_token", "moe_topk", "top_k_experts"
    )
    width = _first(config, "moe_intermediate_size", "intermediate_size")
    if chosen is None or width is None:
        key = "num_experts_per_tok" if chosen is None else "moe_intermediate_size"
        raise InputError(
            f"{experts} experts but no {key}",
            where=where,
            remedy=f"a mixture of experts must give {key}",
        )
    family = str(config.get("model_type", ""))
    return MoeArch(
        num_experts=experts,
        experts_per_token=chosen,
        expert_intermediate=width,
        num_moe_layers=_num_moe_layers(config, num_layers),
        shared_intermediate=_shared_width(config, width, family),
        router_bias=family == "gpt_oss" or config.get("topk_method") == "noaux_tc",
        shared_gate=family in ("qwen2_moe", "qwen3_next", "qwen3_5_moe_text"),
    )


def window_layers(config: dict[str, Any], family: str, num_layers: int) -> tuple[int | None, int]:
    """Return (window in tokens, layers that use it); (None, 0) if every layer is full attention.

    `use_sliding_window: false` (Qwen2) wins over a `sliding_window` that is given all the same.
    """
    window = _first(config, "sliding_window", "attention_chunk_size")
    if not window or window < 0 or config.get("use_sliding_window") is False:
        return None, 0
    sliding = _sliding_count(config, family, num_layers)
    return (window, sliding) if sliding else (None, 0)


def hybrid_layers(config: dict[str, Any], num_layers: int) -> tuple[int | None, tuple[str, ...]]:
    """Return (layers that keep a KV cache, notes) of a linear-attention hybrid; None: all do."""
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and any("linear" in str(kind) for kind in kinds):
        kept = sum("linear" not in str(kind) for kind in kinds)
    elif config.get("full_attention_interval"):
        kept = num_layers // int(config["full_attention_interval"])
    else:
        return None, ()
    note = (
        f"{num_layers - kept} of {num_layers} layers are linear attention: their state is not "
        "counted and their weights are taken as those of attention"
    )
    return kept, (note,)


def _num_moe_layers(config: dict[str, Any], num_layers: int) -> int:
    frequency = config.get("moe_layer_freq")
    if isinstance(frequency, list):
        return sum(bool(flag) for flag in frequency[:num_layers])
    if isinstance(config.get("moe_layers"), list):
        return min(len(config["moe_layers"]), num_layers)
    dense_first = config.get("first_k_dense_replace") or 0
    every = (
        frequency
        or config.get("decoder_sparse_step")
        or config.get("interleave_moe_layer_step")
        or 1
    )
    dense_only = config.get("mlp_only_layers") or ()
    if "first_k_dense_replace" in config:
        # DeepSeek counts from layer 0, Qwen and Llama 4 from layer 1.
        return sum(i >= dense_first and i % every == 0 for i in range(num_layers))
    return sum((i + 1) % every == 0 and i not in dense_only for i in range(num_layers))


def _shared_width(config: dict[str, Any], width: int, family: str) -> int:
    explicit = _first(config, "shared_expert_intermediate_size", "shared_intermediate_size")
    if explicit:
        return explicit
    if family.startswith("llama4"):
        return width
    return (config.get("n_shared_experts") or config.get("num_shared_experts") or 0) * width


def _sliding_count(config: dict[str, Any], family: str, num_layers: int) -> int:
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        return sum(kind in _WINDOWED for kind in kinds)
    pattern = config.get("hybrid_layer_pattern")
    if isinstance(pattern, list):
        return sum(bool(flag) for flag in pattern[:num_layers])
    every = _first(config, "sliding_window_pattern", "_sliding_window_pattern")
    if every is None:
        # Configs that leave the pattern to the code: Gemma 2 and gpt-oss alternate, of six Gemma 3
        # layers and of four Llama 4 layers the last is full.
        for prefix, step in (("gemma2", 2), ("gpt_oss", 2), ("gemma3", 6), ("llama4", 4)):
            if family.startswith(prefix):
                every = step
    if every and every > 0:
        return num_layers - num_layers // every
    if config.get("use_sliding_window") and config.get("max_window_layers") is not None:
        return max(0, num_layers - int(config["max_window_layers"]))
    return num_layers


def _first(config: dict[str, Any], *keys: str) -> int | None:
    """Return the first of `keys` that holds a whole number."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None
