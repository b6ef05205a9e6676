"""Which knobs a problem leaves to turn, and how far."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from hwmodels.spec import GpuSpec
from twin.llm.arch import ModelArch
from twin.llm.parallelism import tp_divides
from twin.scenario import ScenarioFile
from twin.search.candidates import value_in
from twin.search.knob import Choices, Domain, Knob, Powers, Span, Value
from twin.search.problem import Limits
from twin.search.quality import kv_error, weight_error

ANY = "any"


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
    """

    file: ScenarioFile
    arch: ModelArch
    gpu: GpuSpec
    limits: Limits
    engine: str
    shares_prefixes: bool = True
    has_priorities: bool = True
    defaults: Mapping[str, Value] = field(default_factory=dict)

    def default(self, key: str) -> Value:
        """Return what a knob stands at."""
        return self.defaults.get(key, value_in(self.file, key))


def narrow(knobs: Iterable[Knob], ground: Ground) -> tuple[Knob, ...]:
    """Return the knobs that have an effect, each with the values that can be.

    What the engine lacks goes, what loses more precision than allowed, what the network cannot be
    cut into, what the budget of GPUs does not hold, and what would change nothing.
    """
    kept: list[Knob] = []
    for knob in knobs:
        if ground.file.engine.name not in knob.engines or not _has_effect(knob, ground):
            continue
        domain = _narrowed(knob, ground)
        if len(values_of(domain)) > 1:
            kept.append(replace(knob, domain=domain))
    keys = {knob.key for knob in kept}
    return tuple(knob for knob in kept if _can_be_met(knob, ground, keys))


def values_of(domain: Domain) -> tuple[Value, ...]:
    """Return all values of a domain, in its order."""
    if isinstance(domain, Choices):
        return domain.values
    if isinstance(domain, Powers):
        return tuple(
            2**power for power in range(domain.low.bit_length() - 1, domain.high.bit_length())
        )
    steps = round((domain.high - domain.low) / domain.step)
    return tuple(as_number(domain, domain.low + step * domain.step) for step in range(steps + 1))


def as_number(domain: Span, value: float) -> float | int:
    """Return a value of a span: whole where its steps are, else free of the noise of sums."""
    return round(value) if all(map(_whole, (domain.low, domain.step))) else round(value, 9)


def _whole(value: float) -> bool:
    return float(value).is_integer()


def _can_be_met(knob: Knob, ground: Ground, searched: set[str]) -> bool:
    """Whether what a knob needs is so in the scenario, or can be turned."""
    return all(
        key in searched or ground.default(key) in allowed for key, allowed in knob.needs.items()
    )


def _has_effect(knob: Knob, ground: Ground) -> bool:
    rule = _EFFECTS.get(knob.key)
    return rule is None or rule(ground)


def _own_cluster(ground: Ground) -> bool:
    """Pools say themselves how many they are and over how many GPUs."""
    return ground.file.cluster.pools is None


def _gives_up(ground: Ground) -> bool:
    clients = ground.file.clients
    return clients is not None and (
        clients.timeout_s is not None or clients.ttft_timeout_s is not None
    )


_EFFECTS: dict[str, Callable[[Ground], bool]] = {
    "parallelism.tp": _own_cluster,
    "parallelism.pp": _own_cluster,
    "cluster.replicas": lambda g: _own_cluster(g) and g.file.cluster.autoscaler is None,
    "clients.retry.kind": _gives_up,
    "policy.enable_prefix_caching": lambda ground: ground.shares_prefixes,
    "policy.eviction": lambda ground: ground.shares_prefixes,
    "policy.scheduling_policy": lambda ground: ground.has_priorities,
}
"""By key: whether a knob changes anything; all others do."""


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
    bound = _LOSSES.get(knob.key)
    return bound is None or bound(value) <= _most(knob.key, ground.limits)


_LOSSES: dict[str, Callable[[Value], float]] = {
    "policy.kv_cache_dtype": kv_error,
    "policy.quantization": weight_error,
}


def _most(key: str, limits: Limits) -> float:
    return limits.max_kv_error if key == "policy.kv_cache_dtype" else limits.max_weight_error


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
    return Choices(
        tuple(
            value
            for value in values_of(domain)
            if not isinstance(value, str) and (value or 0) <= longest
        )
    )


def _quantization(domain: Domain, ground: Ground) -> Domain:
    """A checkpoint that is quantised already stays as it is."""
    own = ground.arch.checkpoint_dtype
    if own == "bf16":
        return domain
    return Choices(tuple(value for value in values_of(domain) if value in (None, own)))


_DOMAINS: dict[str, Callable[[Domain, Ground], Domain]] = {
    "parallelism.tp": _tp,
    "parallelism.pp": _pp,
    "cluster.replicas": _replicas,
    "policy.long_prefill_token_threshold": _threshold,
    "policy.quantization": _quantization,
}
"""By key: what the network and the budget leave of a domain."""
