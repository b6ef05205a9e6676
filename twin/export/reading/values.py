"""Values of a command line as the types that an engine's options have."""

import json
import re
from typing import Any, get_args

from twin.export.engines import ENGINE_FORMATS

# vLLM's `human_readable_int` (k decimal, K binary) and SGLang's (k, M decimal, Ki, Mi binary).
_SUFFIXES: dict[str, dict[str, int]] = {
    "vllm": {
        "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12,
        "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40,
    },
    "sglang": {
        "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
        "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
    },
    "trtllm": {},
}  # fmt: skip
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)")


def typed(engine: str, name: str, value: Any) -> Any:
    """Return a value as its option's type; what does not fit is returned as it is.

    Args:
        engine: whose option.
        name: of the option, flat.
        value: text of a command line, or a value of a YAML file.
    """
    if not isinstance(value, str):
        return value
    kinds = _kinds(engine, name)
    if bool in kinds and value.lower() in ("true", "false"):
        return value.lower() == "true"
    match = _NUMBER.fullmatch(value.strip())
    if match is None or not kinds & {int, float}:
        return value
    number, suffix = match.groups()
    if suffix and suffix not in _SUFFIXES[engine]:
        return value
    scale = _SUFFIXES[engine].get(suffix, 1)
    if int in kinds and (scale != 1 or "." not in number):
        return round(float(number) * scale) if "." in number else int(number) * scale
    return float(number) * scale


def json_mapping(text: str) -> dict[str, Any] | None:
    """Return the mapping that a text is in JSON, or None."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _kinds(engine: str, name: str) -> set[Any]:
    model: Any = ENGINE_FORMATS[engine].options
    for label in name.split("."):
        fields = {f.alias or n: f for n, f in getattr(model, "model_fields", {}).items()}
        if label not in fields:
            return set()
        kinds = _plain(fields[label].annotation)
        model = next((kind for kind in kinds if hasattr(kind, "model_fields")), None)
    return kinds


def _plain(annotation: Any) -> set[Any]:
    inner = [a for a in get_args(annotation) if isinstance(a, type) or get_args(a)]
    return {kind for a in inner for kind in _plain(a)} if inner else {annotation}
