"""Names of options: other spellings, the list of each engine, and what a slip was meant to be."""

from functools import cache
from pathlib import Path

from twin.export.engines import ENGINE_FORMATS
from twin.naming import remedy_for

_FLAGS = Path(__file__).parent / "flags"
"""Every option of the engines' parsers (vLLM 0.33.0, SGLang 0.5.23) and the words that follow it
(see `arity`), and those of TensorRT-LLM's `TorchLlmArgs` (1.4): `make conformance` holds the first
two to the parsers."""

ALIASES: dict[str, dict[str, str]] = {
    "vllm": {
        "tp": "tensor-parallel-size",
        "pp": "pipeline-parallel-size",
        "dp": "data-parallel-size",
        "q": "quantization",
        "O": "optimization-level",
        "cc": "compilation-config",
        "device-memory-utilization": "gpu-memory-utilization",
        "model-tag": "model",
    },
    "sglang": {
        "model": "model-path",
        "tp": "tp-size",
        "tensor-parallel-size": "tp-size",
        "ep": "ep-size",
        "expert-parallel-size": "ep-size",
        "max-running-reqs": "max-running-requests",
        "disable-cuda-graph": "disable-decode-cuda-graph",
        "cuda-graph-max-bs": "cuda-graph-max-bs-decode",
    },
    "trtllm": {
        "tp_size": "tensor_parallel_size",
        "pp_size": "pipeline_parallel_size",
        "ep_size": "moe_expert_parallel_size",
        "free_gpu_memory_fraction": "kv_cache_config.free_gpu_memory_fraction",
        "kv_cache_free_gpu_memory_fraction": "kv_cache_config.free_gpu_memory_fraction",
        "kv_cache_dtype": "kv_cache_config.dtype",
        "model_path": "model",
        "model-path": "model",
    },
}
"""Further spellings of options that are simulated."""

_SHOWN = 80
"""Characters of an unknown name that are shown."""

FILES = ("config", "extra_llm_api_options", "extra-engine-args", "extra_engine_args")
"""Options that name a YAML file with more of them."""


def own_name(engine: str, name: str) -> str:
    """Return an option's name as the engine's list has it: `--max_num_seqs` as `max-num-seqs`."""
    plain = name.lstrip("-")
    head, dot, rest = plain.partition(".")
    if engine != "trtllm":
        head = head.replace("_", "-")
    return ALIASES[engine].get(head, head) + dot + rest


@cache
def known_names(engine: str) -> frozenset[str]:
    """Return every option that the engine has, simulated or not."""
    return frozenset(_listed(engine)) | simulated_names(engine) | {*FILES, "model"}


@cache
def _listed(engine: str) -> dict[str, str]:
    lines = (_FLAGS / f"{engine}.txt").read_text(encoding="utf-8").splitlines()
    return {name: words for name, _, words in (line.partition(" ") for line in lines)}


def arity(engine: str, name: str) -> str:
    """Return how many words follow an option on the command line.

    `0`: none, a flag; `1`: one; `?`: one or none; `*`: all up to the next option; empty: nobody
    knows, since the engine's list does not have it.
    """
    head, dot, _ = name.partition(".")
    if dot:  # a part of an option that takes JSON
        return "1" if head in known_names(engine) else ""
    listed = _listed(engine).get(name)
    if listed is None:
        return "1" if name in known_names(engine) else ""
    return listed or "1"  # TensorRT-LLM's list tells flags alone: others take one word there


@cache
def simulated_names(engine: str) -> frozenset[str]:
    """Return the options that a policy can say, flat."""
    names = set[str]()
    for name, field in ENGINE_FORMATS[engine].options.model_fields.items():
        label = field.alias or name
        inner = [a for a in getattr(field.annotation, "__args__", ()) if hasattr(a, "model_fields")]
        names.add(label)
        names |= {f"{label}.{f.alias or n}" for a in inner for n, f in a.model_fields.items()}
    return frozenset(names)


def printable(name: str) -> str:
    """Return a name that no engine has as one short line of text that can be shown."""
    plain = "".join(c if c.isprintable() else " " for c in name)
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]}..."


def meant(engine: str, name: str) -> str:
    """Return what an option that the engine does not have may have been meant to be, or nothing."""
    remedy = remedy_for(name, known_names(engine))
    return remedy if remedy.startswith("did you mean") else ""
