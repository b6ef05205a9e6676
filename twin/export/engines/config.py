"""`EngineConfig`: one engine's options for a part of a deployment, and what they leave unsaid."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from twin.cluster import ParallelismSpec
from twin.export.deployment import Part
from twin.export.engines.rows import Row, leaves
from twin.export.options import EngineOptions, Value


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """What an engine is told.

    Attributes:
        options: checked, in its own spelling.
        carried: policy keys that it then has as they were simulated.
        unwritten: what is left to it because its default is what was simulated, `option value`.
        caveats: what it is not told, one sentence each.
    """

    options: EngineOptions
    carried: frozenset[str]
    unwritten: tuple[str, ...]
    caveats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EngineFormat:
    """How one engine is configured.

    Attributes:
        name, title: of the engine, in scenarios and for readers.
        version: whose options are known here.
        options: the typed model of those that a policy may set.
        rows: policy keys and their options.
        model_option: the option that names the model; empty: the command line alone does.
        write: options of a part.
        read: flat scenario keys (`policy.…`, `parallelism.…`) of checked, flat options.
        arguments: options as command-line arguments.
        command: what the arguments follow, given the model and the name of the YAML file.
        with_file: the command that takes the YAML file instead, with `{model}` and `{file}`.
        image: where its container comes from, with `{version}`.
        metrics: of its Prometheus endpoint: requests running, waiting, share of KV in use.
    """

    name: str
    title: str
    version: str
    options: type[EngineOptions]
    rows: tuple[Row, ...]
    model_option: str
    write: Callable[[Part], EngineConfig]
    read: Callable[[Mapping[str, Value]], dict[str, Value]]
    arguments: Callable[[EngineOptions], list[str]]
    command: Callable[[str, str], list[str]]
    with_file: str
    image: str
    metrics: tuple[str, str, str]


_OTHER = {"sglang": "SGLang", "trtllm": "TensorRT-LLM"}
"""Sections of a policy that one engine alone reads."""

SPECIAL: dict[tuple[str, str], str] = {
    ("vllm", "eviction"): "it always evicts the least recently used block",
    ("trtllm", "eviction"): "it evicts the least recently used block of the lowest priority",
    ("vllm", "eviction_ttl_s"): "it always evicts the least recently used block",
    ("sglang", "eviction"): "policy.sglang.radix_eviction_policy is its own",
    ("sglang", "block_size"): "policy.sglang.page_size is its own",
    ("trtllm", "block_size"): "policy.trtllm.tokens_per_block is its own",
    ("trtllm", "enable_chunked_prefill"): "policy.trtllm.enable_chunked_prefill is its own",
    ("vllm", "kv_cache_dtype"): "it has no KV cache of that format",
    ("sglang", "kv_cache_dtype"): "it has no KV cache of that format",
    ("trtllm", "kv_cache_dtype"): "it has no KV cache of that format",
    ("vllm", "quantization"): "it takes this from a quantised checkpoint only; load one",
    ("sglang", "quantization"): "it takes this from a quantised checkpoint only; load one",
    ("trtllm", "quantization"): "it takes weights as the checkpoint has them; load a quantised one",
}
"""Why an engine cannot be told a value, where there is more to say than that it cannot."""


def unmapped(engine: str, title: str, part: Part, carried: Iterable[str]) -> list[str]:
    """Return a sentence for each policy value that an engine is not told."""
    known = set(carried)
    told = []
    for key, value, default in leaves(part.scenario.file.policy):
        if value == default or key in known:
            continue
        section = key.partition(".")[0]
        if section in _OTHER and section != engine:
            told.append(f"policy.{key} {value} is read by {_OTHER[section]} only.")
            continue
        why = SPECIAL.get((engine, key), "it has no option for that")
        told.append(f"policy.{key} {value} is not told to {title}: {why}.")
    return told


def version_caveat(format_version: str, title: str, part: Part) -> list[str]:
    """Return a sentence where the scenario names another version than the options are of."""
    version = part.scenario.file.engine.version
    if version == format_version:
        return []
    return [
        f"Options are those of {title} {format_version}; the scenario names {version}, which may "
        "lack some or spell them otherwise."
    ]


def stated_sizes(spec: ParallelismSpec, names: Mapping[str, str]) -> dict[str, Value]:
    """Return the options of the kinds of parallelism that are used; names are options by kind."""
    sizes = {option: getattr(spec, kind) for kind, option in names.items()}
    return {option: size for option, size in sizes.items() if size != 1}


def left_out(simulated: Mapping[str, Value], options: Mapping[str, Value]) -> tuple[str, ...]:
    """Return `option value` of what was simulated and is not written: the engine's own default."""
    return tuple(f"{name} {value}" for name, value in simulated.items() if name not in options)


def checkpoint_has(part: Part) -> bool:
    """Whether the weights asked for are the checkpoint's own, so that nothing is to be told."""
    asked = part.scenario.file.policy.quantization
    own = part.scenario.arch.checkpoint_dtype
    return asked is not None and asked in (own, {"bf16": "none"}.get(own))
