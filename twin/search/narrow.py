"""Which knobs a problem leaves to turn, how far, and why not the others."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from hwmodels.links import LINKS
from hwmodels.spec import GpuSpec
from twin.llm.arch import ModelArch
from twin.llm.parallelism import tp_divides
from twin.llm.quality import kv_error, weight_error
from twin.llm.quantization import kv_dtype_refusal
from twin.scenario import ScenarioFile
from twin.search.candidates import value_in
from twin.search.domains import values_of
from twin.search.knob import Choices, Domain, Knob, Powers, Span, Value
from twin.search.problem import Limits

ANY = "any"
KV, WEIGHTS = "policy.kv_cache_dtype", "policy.quantization"


@dataclass(frozen=True, slots=True)
class Ground:
    """What a problem stands on.

    Attributes:
        file: the scenario.
        arch: its network.
        gpu: its GPU.
        limits: what every candidate has to keep.
        engine: whose configuration the values have to be in; "any": nobody's in particular.
        shares_prefixes: whether requests have prefixes in common.
        has_priorities: whether requests differ in priority.
        defaults: what each knob stands at in the scenario, the engine's defaults filled in.
        named: knobs that were asked for by name.
        layers_measured: whether there are layers measured whole that can time its steps.
    """

    file: ScenarioFile
    arch: ModelArch
    gpu: GpuSpec
    limits: Limits
    engine: str
    shares_prefixes: bool = True
    has_priorities: bool = True
    defaults: Mapping[str, Value] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    layers_measured: bool = False

    def default(self, key: str) -> Value:
        """Return what a knob stands at."""
        return self.defaults.get(key, value_in(self.file, key))


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What is left of a space.

    Attributes:
        knobs: those with an effect, each with the values that can be.
        dropped: why not the others, by key.
    """

    knobs: tuple[Knob, ...]
    dropped: Mapping[str, str]


def narrow(knobs: Iterable[Knob], ground: Ground) -> Narrowed:
    """Return what a problem leaves to turn.

    What the engine lacks goes, what loses more precision than allowed, what the network cannot be
    cut into, what the budget of GPUs does not hold, and what would change nothing.
    """
    kept: dict[str, Knob] = {}
    dropped: dict[str, str] = {}
    for knob in knobs:
        domain = _narrowed(knob, ground)
        reason = _without_effect(knob, ground)
        if reason is None and len(values_of(domain)) < 2:
            reason = "one value is left"
        if reason is None:
            kept[knob.key] = replace(knob, domain=domain)
        else:
            dropped[knob.key] = reason
    for knob in tuple(kept.values()):
        for key, allowed in knob.needs.items():
            if key not in kept and ground.default(key) not in allowed:
                kept.pop(knob.key, None)
                dropped[knob.key] = f"{key} is {ground.default(key)}"
    return Narrowed(tuple(kept.values()), dropped)


def _without_effect(knob: Knob, ground: Ground) -> str | None:
    name = ground.file.engine.name
    if name not in knob.engines:
        return f"{name} has none"
    rule = _EFFECTS.get(knob.key)
    return None if rule is None else rule(ground)


def _pools(ground: Ground) -> str | None:
    if ground.file.cluster.pools is None:
        return None
    return "each pool has its own"


def _replica_count(ground: Ground) -> str | None:
    if ground.file.cluster.autoscaler is not None:
        return "the autoscaler sets it"
    return _pools(ground)


def _pipeline(ground: Ground) -> str | None:
    """Over NVLink, cutting matrices beats cutting layers, and stages are slow to simulate."""
    key = "parallelism.pp"
    if LINKS[ground.gpu.node.link].kind != "nvlink" or key in ground.named:
        return _pools(ground)
    if ground.default(key) != 1:
        return _pools(ground)
    return "GPUs with NVLink are better used by tp; name the knob to search it"


def _retries(ground: Ground) -> str | None:
    clients = ground.file.clients
    if clients is None or (clients.timeout_s is None and clients.ttft_timeout_s is None):
        return "no client gives up"
    return None


def _prefixes(ground: Ground) -> str | None:
    return None if ground.shares_prefixes else "requests share no prefixes"


def _priorities(ground: Ground) -> str | None:
    return None if ground.has_priorities else "all requests have one priority"


def _graphs(ground: Ground) -> str | None:
    """Without graphs the same steps would be timed by other tables: no difference to go by."""
    return "its layers were measured with CUDA graphs" if ground.layers_measured else None


_EFFECTS: dict[str, Callable[[Ground], str | None]] = {
    "parallelism.tp": _pools,
    "parallelism.pp": _pipeline,
    "cluster.replicas": _replica_count,
    "clients.retry.kind": _retries,
    "policy.enforce_eager": _graphs,
    "policy.enable_prefix_caching": _prefixes,
    "policy.eviction": _prefixes,
    "policy.eviction_ttl_s": _prefixes,
    "policy.sglang.radix_eviction_policy": _prefixes,
    "policy.scheduling_policy": _priorities,
}
"""By key: why a knob is not turned, None where it is; all others are."""


def _narrowed(knob: Knob, ground: Ground) -> Domain:
    rule = _DOMAINS.get(knob.key)
    domain = knob.domain if rule is None else rule(knob.domain, ground)
    if not isinstance(domain, Choices):
        return domain
    own = ground.default(knob.key)
    kept = [value for value in domain.values if _allowed(knob, value, ground)]
    if own not in kept:
        kept.insert(0, own)
    return Choices(tuple(kept))


def _allowed(knob: Knob, value: Value, ground: Ground) -> bool:
    if ground.engine != ANY and ground.engine not in knob.only.get(value, knob.engines):
        return False
    if knob.key == KV:
        return kv_error(value) <= ground.limits.max_kv_error and not kv_dtype_refusal(
            str(value), ground.arch, ground.gpu.compute_capability
        )
    return knob.key != WEIGHTS or weight_error(value) <= ground.limits.max_weight_error


def _tp(domain: Domain, ground: Ground) -> Domain:
    sizes = [
        size
        for size in values_of(domain)
        if isinstance(size, int) and size <= ground.limits.gpus and tp_divides(ground.arch, size)
    ]
    whole = Powers(1, max(sizes, default=1))
    return whole if values_of(whole) == tuple(sizes) else Choices(tuple(sizes))


def _pp(domain: Domain, ground: Ground) -> Domain:
    most = min(ground.limits.gpus, ground.arch.num_layers)
    sizes = [size for size in values_of(domain) if isinstance(size, int) and size <= most]
    return Powers(1, max(sizes, default=1))


def _replicas(domain: Domain, ground: Ground) -> Domain:
    high = domain.high if isinstance(domain, Span) else ground.limits.gpus
    return Span(1, min(high, ground.limits.gpus), 1)


def _threshold(domain: Domain, ground: Ground) -> Domain:
    longest = ground.file.policy.max_model_len or ground.arch.max_position
    whole = (value for value in values_of(domain) if isinstance(value, int))
    return Choices(tuple(value for value in whole if value <= longest))


def _quantization(domain: Domain, ground: Ground) -> Domain:
    """A checkpoint that is quantised already stays as it is."""
    own = ground.arch.checkpoint_dtype
    return domain if own == "bf16" else Choices((None,))


def _radix(domain: Domain, ground: Ground) -> Domain:
    """By priority is by time of use where all have the same."""
    kept = (value for value in values_of(domain) if ground.has_priorities or value != "priority")
    return Choices(tuple(kept))


_DOMAINS: dict[str, Callable[[Domain, Ground], Domain]] = {
    "parallelism.tp": _tp,
    "parallelism.pp": _pp,
    "cluster.replicas": _replicas,
    "policy.long_prefill_token_threshold": _threshold,
    "policy.sglang.radix_eviction_policy": _radix,
    WEIGHTS: _quantization,
}
"""By key: what the network and the budget leave of a domain."""
