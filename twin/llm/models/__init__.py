"""Networks known by name: one file a family, one line here."""

import re
from dataclasses import replace

from twin.llm.arch import ModelArch
from twin.llm.models.deepseek import DEEPSEEK_FAMILY
from twin.llm.models.glm import GLM_FAMILY
from twin.llm.models.gpt_oss import GPT_OSS_FAMILY
from twin.llm.models.llama import LLAMA_FAMILY
from twin.llm.models.minimax import MINIMAX_FAMILY
from twin.llm.models.mistral import MISTRAL_FAMILY
from twin.llm.models.moonshot import MOONSHOT_FAMILY
from twin.llm.models.qwen import QWEN_FAMILY

MODELS: dict[str, ModelArch] = {
    arch.name: arch
    for arch in (
        *LLAMA_FAMILY,
        *QWEN_FAMILY,
        *MISTRAL_FAMILY,
        *GPT_OSS_FAMILY,
        *DEEPSEEK_FAMILY,
        *MINIMAX_FAMILY,
        *MOONSHOT_FAMILY,
        *GLM_FAMILY,
    )
}

# How people write a network whose table name they do not use.
_ALIASES = {
    "mistral-nemo": "mistral-nemo-12b",
    "llama-4-scout-17b-16e": "llama-4-scout",
    "deepseek-v3.1": "deepseek-v3",
}
_FORMATS = (
    ("fp8", re.compile(r"fp8")),
    ("int8", re.compile(r"w8a8|int8")),
    ("int4", re.compile(r"int4|w4a16|awq|gptq")),
)


def find_model(text: str) -> ModelArch | None:
    """Return the network that free text names, or None.

    Spelling, owner prefixes, "-Instruct" and "-hf" do not matter: "Llama-2-7b-hf fp16",
    "Qwen/Qwen3-235B-A22B-FP8" and "Mistral-Nemo-Instruct-2407" are found. A weight format in the
    text (FP8, w8a8, int4, AWQ, …) picks that checkpoint, or else the bf16 network with its
    linear layers in that format. "kv fp8" is no weight format.
    """
    weights_text = re.sub(r"kv[\s_-]*(cache[\s_-]*)?(dtype[\s_-]*)?(fp8|int8)\w*", "", text.lower())
    named = {name: name for name in MODELS} | _ALIASES
    hits = [name for name in named if _pattern(name).search(weights_text)]
    if not hits or "distill" in weights_text:
        return None
    base = MODELS[named[max(hits, key=len)]]
    for dtype, pattern in _FORMATS:
        if pattern.search(weights_text):
            return base if base.checkpoint_dtype == dtype else _in_format(base, dtype)
    return base


def _in_format(base: ModelArch, dtype: str) -> ModelArch:
    published = MODELS.get(f"{base.name}-{dtype}")
    if published is not None or base.checkpoint_dtype != "bf16":
        return published or base
    return replace(
        base,
        name=f"{base.name}-{dtype}",
        checkpoint_dtype=dtype,
        notes=(*base.notes, f"no {dtype} checkpoint in the table: all linear layers in {dtype}"),
    )


def _pattern(name: str) -> re.Pattern[str]:
    """Match a name whatever stands between its runs of letters and of digits."""
    runs = re.findall(r"[a-z]+|\d+", name)
    return re.compile(r"(?<![a-z0-9])" + r"[\W_]*".join(runs) + r"(?![a-z0-9])(?!\.\d)")
