"""Config files of each family, cut down to what decides memory and shape."""

import json
from pathlib import Path
from typing import Any

import pytest

from twin.errors import InputError
from twin.llm.config_json import arch_of, read_config
from twin.llm.models import MODELS
from twin.llm.weights import parameter_count

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": False,
}  # fmt: skip
QWEN2 = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
    "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
    "vocab_size": 152064, "max_position_embeddings": 32768, "sliding_window": 131072,
    "max_window_layers": 28, "use_sliding_window": False,
}  # fmt: skip
MIXTRAL = {
    "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
    "vocab_size": 32000, "max_position_embeddings": 32768, "num_local_experts": 8,
    "num_experts_per_tok": 2, "sliding_window": None,
}  # fmt: skip
QWEN3_MOE = {
    "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "head_dim": 128,
    "num_attention_heads": 32, "num_hidden_layers": 48, "num_key_value_heads": 4,
    "vocab_size": 151936, "max_position_embeddings": 40960, "moe_intermediate_size": 768,
    "num_experts": 128, "num_experts_per_tok": 8, "decoder_sparse_step": 1, "mlp_only_layers": [],
}  # fmt: skip
GPT_OSS = {
    "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "head_dim": 64,
    "num_attention_heads": 64, "num_hidden_layers": 24, "num_key_value_heads": 8,
    "vocab_size": 201088, "max_position_embeddings": 131072, "attention_bias": True,
    "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128,
    "layer_types": ["sliding_attention", "full_attention"] * 12,
    "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]},
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
    "num_attention_heads": 128, "num_hidden_layers": 61, "num_key_value_heads": 128,
    "vocab_size": 129280, "max_position_embeddings": 163840, "kv_lora_rank": 512,
    "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
    "first_k_dense_replace": 3, "moe_layer_freq": 1, "moe_intermediate_size": 2048,
    "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8,
    "topk_method": "noaux_tc",
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}  # fmt: skip
GEMMA3 = {
    "model_type": "gemma3",
    "vision_config": {"hidden_size": 1152},
    "text_config": {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
        "head_dim": 256, "num_attention_heads": 8, "num_hidden_layers": 34,
        "num_key_value_heads": 4, "vocab_size": 262208, "sliding_window": 1024,
        "sliding_window_pattern": 6, "max_position_embeddings": 131072,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (LLAMA, "llama-3.1-8b"),
        (QWEN2, "qwen2.5-7b"),
        (MIXTRAL, "mixtral-8x7b"),
        (QWEN3_MOE, "qwen3-30b-a3b"),
        (GPT_OSS, "gpt-oss-20b"),
        (DEEPSEEK, "deepseek-v3"),
    ],
)
def test_a_config_reads_as_the_table_has_it(config: dict[str, Any], name: str) -> None:
    read, known = arch_of(config), MODELS[name]
    for field in known.__slots__:
        if field not in ("name", "source", "notes"):
            assert getattr(read, field) == getattr(known, field), field


def test_nested_text_config_window_pattern_and_family_defaults() -> None:
    arch = arch_of(GEMMA3)
    assert (arch.head_dim, arch.sliding_window, arch.num_sliding_layers) == (256, 1024, 29)
    assert arch.tied_embeddings  # Gemma leaves it out and means yes
    assert arch.qk_norm
    assert arch.norms_per_layer == 4
    assert any("encoder" in note for note in arch.notes)
    # Gemma 3 technical report, table 1: the 4B network has 3,209 M non-embedding parameters.
    assert parameter_count(arch) - 262_208 * 2560 == pytest.approx(3209e6, abs=0.5e6)


def test_qwen2_window_needs_to_be_switched_on() -> None:
    assert arch_of(QWEN2).sliding_window is None
    on = arch_of({**QWEN2, "use_sliding_window": True, "max_window_layers": 20})
    assert (on.sliding_window, on.num_sliding_layers) == (131072, 8)


def test_mistral_window_covers_every_layer() -> None:
    arch = arch_of({**LLAMA, "model_type": "mistral", "sliding_window": 4096})
    assert (arch.sliding_window, arch.num_sliding_layers) == (4096, 32)


def test_head_dim_and_kv_heads_may_be_missing() -> None:
    config = {key: value for key, value in LLAMA.items() if key != "num_key_value_heads"}
    arch = arch_of(config)
    assert (arch.num_kv_heads, arch.head_dim) == (32, 128)


def test_every_second_layer_is_moe() -> None:
    sparse = arch_of({**QWEN3_MOE, "decoder_sparse_step": 2}).moe
    assert sparse is not None
    assert sparse.num_moe_layers == 24
    some_dense = arch_of({**QWEN3_MOE, "mlp_only_layers": [0, 5]}).moe
    assert some_dense is not None
    assert some_dense.num_moe_layers == 46


@pytest.mark.parametrize(
    ("section", "dtype", "block"),
    [
        ({"quant_method": "fp8"}, "fp8", None),
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, "fp8", (128, 128)),
        ({"quant_method": "gptq", "bits": 4, "group_size": 64}, "int4", (1, 64)),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "int4", (1, 128)),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8", None),
        ({"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}, "fp8", None),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}},
            },
            "int8",
            None,
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "g": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}
                },
            },
            "int4",
            (1, 32),
        ),
    ],
)
def test_quantised_checkpoints(
    section: dict[str, Any], dtype: str, block: tuple[int, int] | None
) -> None:
    arch = arch_of({**LLAMA, "quantization_config": section})
    assert (arch.checkpoint_dtype, arch.scale_block) == (dtype, block)


def test_unknown_quantisation_is_refused() -> None:
    with pytest.raises(InputError, match="aqlm"):
        arch_of({**LLAMA, "quantization_config": {"quant_method": "aqlm"}})


def test_unknown_architecture_is_read_with_a_warning() -> None:
    arch = arch_of({**LLAMA, "model_type": "brandnew"})
    assert parameter_count(arch) == 8_030_261_248
    assert any("brandnew" in note for note in arch.notes)
    assert arch_of(LLAMA).notes == ()


def test_linear_attention_layers_keep_no_kv() -> None:
    arch = arch_of({**LLAMA, "model_type": "qwen3_next", "full_attention_interval": 4})
    assert arch.num_kv_layers == 8
    assert any("24 of 32" in note for note in arch.notes)


def test_state_space_networks_are_refused() -> None:
    with pytest.raises(InputError, match="nemotron_h"):
        arch_of({**LLAMA, "model_type": "nemotron_h"})


def test_missing_key_names_file_key_and_choices(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({key: LLAMA[key] for key in LLAMA if key != "vocab_size"}))
    with pytest.raises(InputError) as caught:
        read_config(file)
    assert str(file) in str(caught.value)
    assert "vocab_size" in str(caught.value)


@pytest.mark.parametrize("value", [0, -1, "many", True, 1.5])
def test_a_count_that_is_none(value: object) -> None:
    with pytest.raises(InputError, match="num_hidden_layers"):
        arch_of({**LLAMA, "num_hidden_layers": value})


@pytest.mark.parametrize("content", ["[]", "{", "\x00"])
def test_a_file_that_is_no_config(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(content)
    with pytest.raises(InputError, match="JSON"):
        read_config(file)
    with pytest.raises(InputError, match="cannot be read"):
        read_config(tmp_path / "absent.json")


def test_folder_and_modelopt_section_beside_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "hf_quant_config.json").write_text(
        json.dumps({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}})
    )
    arch = read_config(tmp_path)
    assert arch.checkpoint_dtype == "fp8"
    assert arch.name == tmp_path.name
    assert any("kv_cache_dtype" in note for note in arch.notes)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"num_hidden_layers": 10**9}, "num_hidden_layers is 1000000000; it must be a whole"),
        ({"hidden_size": 10**40}, "hidden_size is"),
        ({"partial_rotary_factor": "half"}, "partial_rotary_factor is 'half'"),
        ({"full_attention_interval": float("nan")}, "full_attention_interval is nan"),
        ({"full_attention_interval": 99}, "no layer has full attention"),
        ({"layer_types": ["full_attention"]}, "layer_types has 1 entries"),
        ({"num_experts": 8, "num_experts_per_tok": 2, "mlp_only_layers": 3}, "mlp_only_layers"),
        ({"num_experts": 8, "num_experts_per_tok": 2, "moe_layer_freq": "1"}, "moe_layer_freq"),
        ({"num_experts": 10**40, "num_experts_per_tok": 2}, "num_experts is a huge number"),
        ({"kv_lora_rank": 512, "qk_nope_head_dim": "128"}, "qk_nope_head_dim is '128'"),
        (
            {"quantization_config": {"quant_method": "fp8", "weight_block_size": [0, 0]}},
            "weight_block_size is [0, 0]",
        ),
        (
            {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": "128"}},
            "group_size is '128'",
        ),
        (
            {"quantization_config": {"quant_method": "compressed-tensors", "config_groups": [1]}},
            "config_groups is [1]",
        ),
    ],
)
def test_values_no_network_has_are_refused(change, says):
    config = {
        "model_type": "llama",
        "hidden_size": 512,
        "num_attention_heads": 8,
        "num_hidden_layers": 4,
        "intermediate_size": 1024,
        "vocab_size": 1000,
        **change,
    }
    with pytest.raises(InputError) as caught:
        arch_of(config, where="c.json")
    assert says in str(caught.value)
    assert str(caught.value).startswith("c.json")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b" " * (16 * 2**20 + 1), "larger than 16 MiB"),
        (b"{", "is not JSON"),
    ],
)
def test_files_that_are_no_config(tmp_path, content, says):
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        read_config(path)
