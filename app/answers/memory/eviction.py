"""What other eviction policies would make of a setup's requests, beside the best possible."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from app.answers.setup import Setup
from twin.caching.comparison import CacheComparison
from twin.caching.of_scenario import compare_own, tells_prefixes
from twin.caching.question import BELADY
from twin.engine.run import quickest_engine
from twin.report.charts.cache import below_chart, rate_chart
from twin.report.charts.chart import Chart
from twin.report.charts.hits import with_pool_marked
from twin.report.numbers import count, percent
from twin.scenario import Scenario


@dataclass(frozen=True, slots=True)
class EvictionAnswer:
    """The comparison, ready to be drawn.

    Attributes:
        verdict: what the best policy gains at the size of this pool.
        facts: what was replayed, in sentences.
        charts: hit rates over capacity, and the distance to the optimum.
        rows: of a table: each policy at the size of this pool.
        options: what the command line takes beside the trace, for the same blocks and bytes.
    """

    verdict: str
    facts: list[str]
    charts: list[Chart]
    rows: list[dict[str, Any]]
    options: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data that `eviction_from` reads."""
        return asdict(self)


def eviction_from(data: Mapping[str, Any]) -> EvictionAnswer:
    """Return the answer in what `EvictionAnswer.as_dict` gave."""
    return EvictionAnswer(**{**data, "charts": [Chart(**chart) for chart in data["charts"]]})


def shares_prefixes(setup: Setup) -> bool:
    """Whether a setup's workload says which prompts share a prefix.

    Raises:
        InputError: its parts do not go together.
    """
    return tells_prefixes(setup.scenario())


def eviction_answer(
    setup: Setup, progress: Callable[[int, int | None], None] | None = None
) -> EvictionAnswer:
    """Compare eviction policies on a setup's own requests.

    Args:
        setup: what is asked.
        progress: called with (replays done, all of them).

    Raises:
        InputError: its parts do not go together, or its prompts share nothing.
    """
    scenario = setup.scenario()
    return compared(scenario, compare_own(scenario, progress, engine=quickest_engine()))


def compared(scenario: Scenario, found: CacheComparison) -> EvictionAnswer:
    """Return what a comparison says of a scenario."""
    place, now = _own_place(found), scenario.policy.given.eviction
    replicas = scenario.file.cluster.replicas
    label = "this GPU's pool" if scenario.file.parallelism.tp == 1 else "a replica's pool"
    return EvictionAnswer(
        verdict=_verdict(scenario, found),
        facts=[*_facts(found, replicas), *found.notes],
        charts=[
            with_pool_marked(chart, found, label)
            for chart in (rate_chart(found), below_chart(found))
        ],
        rows=[
            {
                "Policy": f"{policy} (in use)" if policy == now and _is_vllm(scenario) else policy,
                "Hit rate (%)": round(100 * found.hit_rate(policy, place), 2),
                "Below Belady (points)": round(100 * found.below_optimum(policy, place), 2),
            }
            for policy in found.replays
        ],
        options=_options(scenario, found),
    )


def _options(scenario: Scenario, found: CacheComparison) -> list[str]:
    dtype = scenario.policy.given.kv_cache_dtype
    return [
        "--block-size",
        str(found.accesses.block_tokens),
        "--llm",
        "config.json" if scenario.file.llm.startswith("/") else found.question.llm,
        *([] if dtype == "auto" else ["--kv-cache-dtype", dtype]),
        "--capacities",
        ",".join(str(blocks) for blocks in found.question.capacities_blocks),
    ]


def _is_vllm(scenario: Scenario) -> bool:
    """Whether `policy.eviction` is what evicts: other engines have rules of their own."""
    return scenario.file.engine.name == "vllm"


def _own_place(found: CacheComparison) -> int:
    """Return which of the sizes is the replica's own pool."""
    sizes = found.question.capacities_blocks
    return sizes.index(min(found.pool_blocks, sizes[-1]))


def _verdict(scenario: Scenario, found: CacheComparison) -> str:
    place = _own_place(found)
    rates = {policy: found.hit_rate(policy, place) for policy in found.replays if policy != BELADY}
    best = max(rates, key=lambda policy: rates[policy])
    now = scenario.policy.given.eviction if _is_vllm(scenario) else "lru"
    optimum = found.hit_rate(BELADY, place)
    blocks = count(found.question.capacities_blocks[place])
    start = f"With this pool ({blocks} blocks) {now} hits {percent(rates[now])} of look-ups"
    if optimum == rates[now]:
        return f"{start}, as many as any policy can: eviction is not what limits hits here."
    gain = 100 * (rates[best] - rates[now])
    tail = f"knowing the future would give {percent(optimum)}"
    if best == now or gain < 0.05:
        return f"{start}; no other policy hits more, {tail}."
    return f"{start}; {best} hits {gain:.1f} points more, {tail}."


def _facts(found: CacheComparison, replicas: int) -> list[str]:
    accesses = found.accesses
    facts = [
        f"{count(accesses.num_requests)} requests look up {count(accesses.num_lookups)} full "
        f"blocks of {count(accesses.block_tokens)} tokens, {count(accesses.num_distinct)} of them "
        "different. Replayed one after another: what runs at the same time, and blocks of "
        "answers, are left out, so hit rates are of the workload, not of the deployment.",
    ]
    if replicas > 1:
        facts.append(f"All requests meet one pool here; {count(replicas)} replicas share them out.")
    return facts
