"""`Given`: what a configuration says, before it is a scenario."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from twin.export.options import Value


@dataclass(frozen=True, slots=True)
class Given:
    """Options as they were found, names spelt as the engine's own list has them.

    Attributes:
        engine: vllm, sglang or trtllm.
        version: of the engine, where an image's tag says it.
        model: what the engine loads.
        options: flat, `kv_cache_config.dtype` for one inside another; those that a policy can say.
        replicas: how many servers a manifest asks for.
        passed_over: options that exist and are not simulated; names alone, never values.
        unmodelled: of those, which change latencies: what they ask for, and their names.
        may_hold_model: options that nobody knows here and that a word follows, while nothing
            else names the model.
        unknown: options that the engine does not have, each with what may have been meant.
        notes: what else a reader should know, one sentence each.
    """

    engine: str
    version: str | None = None
    model: str | None = None
    options: Mapping[str, Value] = field(default_factory=dict)
    replicas: int | None = None
    passed_over: tuple[str, ...] = ()
    unmodelled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    may_hold_model: tuple[str, ...] = ()
    unknown: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
