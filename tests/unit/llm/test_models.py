"""Published parameter counts, and names as people write them."""

import pytest

from twin.llm.models import MODELS, find_model
from twin.llm.weights import parameter_count

# Totals of the safetensors files on Hugging Face (DeepSeek-V3 without its MTP layer).
PUBLISHED = {
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "codellama-34b": 33_743_970_304,
    "yi-34b": 34_388_917_248,
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "mistral-7b": 7_248_023_552,
    "mistral-nemo-12b": 12_247_782_400,
    "mixtral-8x7b": 46_702_792_704,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "deepseek-v3": 671_026_419_200,
}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_parameter_count_is_exact(name: str) -> None:
    assert parameter_count(MODELS[name]) == PUBLISHED[name]


@pytest.mark.parametrize(
    ("text", "name", "dtype"),
    [
        ("Llama-2-7b-hf fp16", "llama-2-7b", "bf16"),
        ("meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b", "bf16"),
        ("llama3.1:8b", "llama-3.1-8b", "bf16"),
        ("Mistral-Nemo-Instruct-2407", "mistral-nemo-12b", "bf16"),
        ("CodeLlama-34b-Instruct-hf", "codellama-34b", "bf16"),
        ("Mixtral-8x7B-v0.1 fp16", "mixtral-8x7b", "bf16"),
        ("Qwen3-235B-A22B-FP8", "qwen3-235b-a22b-fp8", "fp8"),
        ("Qwen3-8B bf16, kv fp8", "qwen3-8b", "bf16"),
        ("Llama-3.1-405B FP8", "llama-3.1-405b-fp8", "fp8"),
        ("Llama-3.1-70B w8a8", "llama-3.1-70b-int8", "int8"),
        ("Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b-int4", "int4"),
        ("DeepSeek-V3 FP8", "deepseek-v3", "fp8"),
        ("openai/gpt-oss-120b", "gpt-oss-120b", "mxfp4"),
    ],
)
def test_lenient_names(text: str, name: str, dtype: str) -> None:
    arch = find_model(text)
    assert arch is not None
    assert (arch.name, arch.checkpoint_dtype) == (name, dtype)


@pytest.mark.parametrize(
    "text",
    [
        "", "(any) concurrency identity", "Qwen3-1.7B", "Mixtral-8x22B-v0.1", "DeepSeek-V3.2",
        "DeepSeek-R1-Distill-Llama-70B", "Llama-2-70bx", "Qwen3-8B7", "CodeLlama-7b",
    ],
)  # fmt: skip
def test_other_networks_are_not_taken_for_known_ones(text: str) -> None:
    assert find_model(text) is None
