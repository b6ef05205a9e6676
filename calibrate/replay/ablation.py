"""What each term of a replay is worth: its errors without it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rich.console import Console
from rich.table import Table

from calibrate.replay.replay import METRICS, error_pct, outcome, scenario_of, with_blocks
from calibrate.replay.run_folder import RunFolder
from twin.scenario import Scenario

_BLOCKS_TOO_MANY = 1.3
_STATISTICS = ("mean", "p50", "p99")

Change = Callable[[Scenario], Scenario]


def _without_prefix_cache(scenario: Scenario) -> Scenario:
    given = scenario.policy.given.model_copy(update={"enable_prefix_caching": False})
    return replace(scenario, policy=replace(scenario.policy, given=given))


def _in_lockstep(scenario: Scenario) -> Scenario:
    return replace(scenario, policy=replace(scenario.policy, async_scheduling=False))


def _too_many_blocks(scenario: Scenario) -> Scenario:
    return replace(scenario, num_gpu_blocks=int(_BLOCKS_TOO_MANY * scenario.num_gpu_blocks))


def _even_lengths(scenario: Scenario) -> Scenario:
    profile = scenario.layer_profile
    if profile is None:
        return scenario
    tables = {name: profile.tables[name] for name in profile.tables if name != "skew"}
    return replace(scenario, layer_profile=replace(profile, tables=tables))


TERMS: dict[str, Change] = {
    "nothing": lambda scenario: scenario,
    "prefix cache": _without_prefix_cache,
    "deciding one step ahead": _in_lockstep,
    "uneven decode lengths": _even_lengths,
    "KV capacity (30 % more blocks)": _too_many_blocks,
}
"""What is left out, one at a time."""


@dataclass(frozen=True, slots=True)
class Ablated:
    """Signed errors without a term, per cent, by metric and statistic."""

    term: str
    error_pct: dict[str, dict[str, float]]


def ablate(run: RunFolder) -> list[Ablated]:
    """Return a run's errors without each term, with the logged block count if there is one."""
    scenario = scenario_of(run)
    if run.logged_blocks is not None:
        scenario = with_blocks(run, scenario, run.logged_blocks)
    return [
        Ablated(term, error_pct(outcome(run, change(scenario)).predicted, run.measured))
        for term, change in TERMS.items()
    ]


def print_ablation(found: list[Ablated], console: Console) -> None:
    """Print one row a term."""
    table = Table(title="Errors without a term, per cent", title_justify="left")
    table.add_column("left out")
    for metric in METRICS:
        for statistic in _STATISTICS:
            table.add_column(f"{metric.upper()} {statistic}", justify="right")
    for one in found:
        cells = [f"{one.error_pct[m][s]:+.1f}" for m in METRICS for s in _STATISTICS]
        table.add_row(one.term, *cells)
    console.print(table)
