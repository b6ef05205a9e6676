"""Reads a Hugging Face `config.json` into a `ModelArch`.

Every decoder-only family that spells its shape the usual way is understood; where a config says
something that the arithmetic of weights and KV cache does not know, the result carries a note.
"""

import json
from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.llm.arch import MlaArch, ModelArch
from twin.llm.config_layers import hybrid_layers, moe_arch, window_layers
from twin.llm.config_quantization import checkpoint_format
from twin.llm.config_values import (
    MAX_LAYERS,
    MAX_SIZE,
    check_quantization,
    check_values,
    is_whole,
)

_MAX_BYTES = 16 * 2**20

# Families whose shape was checked against real config files.
KNOWN_FAMILIES = frozenset(
    {
        "llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe",
        "qwen3_vl_text", "qwen3_vl_moe_text", "gemma", "gemma2", "gemma3", "gemma3_text",
        "gpt_oss", "deepseek_v2", "deepseek_v3", "kimi_k2", "llama4_text", "mimo",
        "minimax_m2",
    }
)  # fmt: skip
_NO_GATE = frozenset(
    {
        "gpt2", "gpt_neox", "gptj", "gpt_bigcode", "falcon", "starcoder2", "phi", "bloom",
        "opt", "mpt", "nemotron",
    }
)  # fmt: skip
_QK_NORM = ("qwen3", "gemma3")
_FOUR_NORMS = ("gemma2", "gemma3")
# State-space and compressed-attention networks have neither the weights nor the KV cache of a
# transformer; reading them as one would be wrong by a factor.
_NOT_TRANSFORMERS = ("mamba", "nemotron_h", "kimi_linear", "deepseek_v4", "deepseek_ref", "jamba")


def read_config(path: str | Path) -> ModelArch:
    """Return the network described by a `config.json` (or by a folder that holds one).

    Raises:
        InputError: the file is missing, is not JSON, or lacks a needed key; names file and key.
    """
    file = Path(path)
    if file.is_dir():
        file = file / "config.json"
    config = _load(file)
    quantization = file.with_name("hf_quant_config.json")
    if quantization.is_file() and "quantization_config" not in config:
        config["quantization_config"] = _load(quantization).get("quantization")
    return arch_of(config, where=str(file), name=_name_of(file, config))


def arch_of(config: dict[str, Any], *, where: str = "config.json", name: str = "") -> ModelArch:
    """Return the network that an already parsed config describes."""
    outer = config
    inner = config.get("text_config")
    text = dict(inner) if isinstance(inner, dict) else config
    text.setdefault("model_type", outer.get("model_type", ""))
    family = str(text["model_type"] or "")
    if family.startswith(_NOT_TRANSFORMERS):
        raise InputError(
            f"architecture {family!r} is not a plain transformer",
            where=f"{where}, model_type",
            remedy="use a model whose layers are attention and MLP or experts",
        )
    check_values(text, where)
    fields = _Fields(text, where)
    shape = _shape(fields, family)
    quantization = text.get("quantization_config") or outer.get("quantization_config")
    check_quantization(quantization, where)
    dtype, block, unquantized, dtype_notes = checkpoint_format(quantization, where)
    _check_layers(text, shape["num_layers"], where)
    kv_layers, layer_notes = hybrid_layers(text, shape["num_layers"])
    window, sliding = window_layers(text, family, shape["num_layers"])
    notes = (*_family_notes(family, outer, text), *dtype_notes, *layer_notes)
    return ModelArch(
        name=name or str(outer.get("_name_or_path") or family),
        sliding_window=window,
        num_sliding_layers=sliding,
        moe=moe_arch(text, shape["num_layers"], where),
        mla=_mla(fields),
        checkpoint_dtype=dtype,
        scale_block=block,
        unquantized=unquantized,
        num_kv_layers=kv_layers,
        source=where,
        notes=notes,
        **shape,
        **_details(text, outer, family),
    )


class _Fields:
    """A config under the several names that families give to one fact."""

    def __init__(self, config: dict[str, Any], where: str) -> None:
        self.config = config
        self.where = where

    def count(self, *keys: str, default: int | None = None, most: int = MAX_SIZE) -> int:
        """Return the first of `keys` that is present, a whole number from 1 to `most`."""
        for key in keys:
            value = self.config.get(key)
            if value is None:
                continue
            if not is_whole(value, 1, most):
                raise InputError(
                    f"{key} is {repr(value)[:60]}",
                    where=self.where,
                    remedy=f"it must be a whole number above 0, at most {most:,}",
                )
            return int(value)
        if default is None:
            raise InputError(
                f"no {keys[0]}",
                where=self.where,
                remedy="a model config must give " + " or ".join(keys),
            )
        return default


def _shape(fields: _Fields, family: str) -> dict[str, Any]:
    hidden = fields.count("hidden_size", "n_embd", "d_model")
    heads = fields.count("num_attention_heads", "n_head", "n_heads")
    default_kv = 1 if fields.config.get("multi_query") is True else heads
    if (
        fields.config.get("head_dim") is None
        and hidden % heads
        and "kv_lora_rank" not in (fields.config)
    ):
        raise InputError(
            f"hidden_size {hidden} is not a multiple of num_attention_heads {heads}",
            where=fields.where,
            remedy="give head_dim",
        )
    # MLA heads have a rotated and an unrotated part; `hidden / heads` says nothing there.
    mla_dim = sum(fields.config.get(key) or 0 for key in ("qk_nope_head_dim", "qk_rope_head_dim"))
    head_dim = mla_dim or fields.count("head_dim", default=hidden // heads)
    dense_keys: tuple[str, ...] = ("intermediate_size", "n_inner", "ffn_dim")
    if family.startswith("llama4"):
        dense_keys = ("intermediate_size_mlp", *dense_keys)
    needs_dense = "moe_intermediate_size" not in fields.config
    default_dense = 4 * hidden if family in _NO_GATE else None
    return {
        "hidden_size": hidden,
        "num_heads": heads,
        "num_layers": fields.count("num_hidden_layers", "n_layer", "n_layers", most=MAX_LAYERS),
        "num_kv_heads": fields.count(
            "num_key_value_heads", "num_kv_heads", "n_head_kv", default=default_kv
        ),
        "head_dim": head_dim,
        "intermediate_size": fields.count(
            *dense_keys,
            default=default_dense if needs_dense else fields.config["moe_intermediate_size"],
        ),
        "vocab_size": fields.count("vocab_size"),
        "max_position": fields.count(
            "max_position_embeddings", "n_positions", "max_sequence_length", default=2048
        ),
    }


def _check_layers(config: dict[str, Any], num_layers: int, where: str) -> None:
    """A list of layers must tell of each one, and one of them must keep a KV cache."""
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and len(kinds) != num_layers:
        raise InputError(
            f"layer_types has {len(kinds)} entries for {num_layers} layers",
            where=where,
            remedy="it must name the kind of every layer",
        )
    kept, _ = hybrid_layers(config, num_layers)
    if kept == 0:
        raise InputError(
            "no layer has full attention",
            where=where,
            remedy="use a model of which at least one layer keeps a KV cache",
        )


def _mla(fields: _Fields) -> MlaArch | None:
    if fields.config.get("kv_lora_rank") is None:
        return None
    return MlaArch(
        kv_lora_rank=fields.count("kv_lora_rank"),
        q_lora_rank=fields.config.get("q_lora_rank") or 0,
        qk_nope_dim=fields.count("qk_nope_head_dim"),
        qk_rope_dim=fields.count("qk_rope_head_dim"),
        v_dim=fields.count("v_head_dim"),
    )


def _details(text: dict[str, Any], outer: dict[str, Any], family: str) -> dict[str, Any]:
    """Biases, norms and tying: small for memory, needed for exact parameter counts."""
    attention_bias = bool(text.get("attention_bias", False))
    tied = text.get("tie_word_embeddings", outer.get("tie_word_embeddings"))
    mla = text.get("kv_lora_rank") is not None
    head_dim = text.get("head_dim") or 0
    partial = text.get("partial_rotary_factor")
    return {
        "tied_embeddings": family.startswith("gemma") if tied is None else bool(tied),
        "qkv_bias": attention_bias or family in ("qwen2", "qwen2_moe"),
        "o_bias": attention_bias and not family.startswith("glm"),
        "mlp_bias": bool(text.get("mlp_bias", family == "gpt_oss")),
        "gated_mlp": family not in _NO_GATE,
        "attention_sinks": family == "gpt_oss",
        "qk_norm": not mla
        and (family.startswith(_QK_NORM) or (bool(text.get("use_qk_norm")) and "glm" in family)),
        "norms_per_layer": 4 if family.startswith(_FOUR_NORMS) else 2,
        "rope_dim": int(head_dim * partial) if partial and head_dim and not mla else None,
    }


def _family_notes(family: str, outer: dict[str, Any], text: dict[str, Any]) -> tuple[str, ...]:
    notes = []
    if family not in KNOWN_FAMILIES:
        notes.append(
            f"architecture {family or 'without model_type'!r} was not checked against a real "
            "checkpoint: read as a plain transformer of this shape"
        )
    if text is not outer and any(key in outer for key in ("vision_config", "audio_config")):
        notes.append("the image or audio encoder's weights are not counted")
    if text.get("num_nextn_predict_layers"):
        notes.append("the multi-token-prediction layer is not counted")
    return tuple(notes)


def _load(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise InputError(
                f"is larger than {_MAX_BYTES >> 20} MiB",
                where=str(file),
                remedy="give the path of a Hugging Face config.json",
            )
        content = json.loads(raw.decode("utf-8-sig"))
    except RecursionError:
        raise InputError("the JSON is nested too deeply", where=str(file)) from None
    except OSError as error:
        raise InputError(
            f"cannot be read ({error.strerror})",
            where=str(file),
            remedy="give the path of a Hugging Face config.json",
        ) from None
    except ValueError as error:
        raise InputError(
            f"is not JSON ({error})",
            where=str(file),
            remedy="give the path of a Hugging Face config.json",
        ) from None
    if not isinstance(content, dict):
        raise InputError("is not a JSON object", where=str(file))
    return content


def _name_of(file: Path, config: dict[str, Any]) -> str:
    """`meta-llama--Llama-3.1-8B_config.json`, or a folder's name for a bare `config.json`."""
    if file.name != "config.json":
        return file.stem.removesuffix("_config").replace("--", "/")
    return file.resolve().parent.name or str(config.get("model_type", ""))
