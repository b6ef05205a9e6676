"""What a judgement is in words."""

from collections.abc import Sequence

from twin.report.numbers import percent
from twin.search.evaluation import Evaluation
from twin.search.judging.confirm import Confirmation
from twin.search.judging.pareto import TIE, Tried
from twin.search.judging.told import CONSTRAINTS, title_of, told, told_gain
from twin.search.objectives import Objective


def sentence_of(
    chosen: Confirmation | None,
    found: Sequence[Confirmation],
    order: Sequence[Tried],
    objectives: Sequence[Objective],
) -> str:
    """Return what is recommended and the figures that decide it.

    Args:
        chosen: what is recommended; None: the default.
        found: all that was run again.
        order: the trials that keep the constraints, best first; there is one.
        objectives: in the order in which they decide.
    """
    if chosen is not None:
        return f"Adopt the found policy: {_merits(chosen)}."
    if not found:
        if not order[0].candidate:
            return f"Keep the default: {_none_better(order, objectives[0])}."
        return "Keep the default: what was found does the same with the default's settings."
    return f"Keep the default: {_failing(found[0])}."


def _none_better(order: Sequence[Tried], objective: Objective) -> str:
    """Return that no trial is better than the default, or by how little the best one is."""
    default = order[0].evaluation.objectives[objective.name]
    values = [tried.evaluation.objectives[objective.name] for tried in order]
    best = max(values) if objective.direction == "maximize" else min(values)
    title = title_of(objective.name)
    if best == default:
        return f"no trial was better in {title}"
    if default == 0:
        return f"no trial was better in {title} by more than counts"
    return (
        f"no trial was better in {title} by more than {percent(TIE)}, which counts as equal "
        f"(the best by {percent(abs(best / default - 1))})"
    )


def _merits(chosen: Confirmation) -> str:
    parts = [
        f"{title_of(gain.objective)} {gain.described}"
        for gain in chosen.gains
        if gain.verdict == "gain"
    ]
    costs = [
        f"{title_of(gain.objective)} {gain.described}"
        for gain in chosen.gains
        if gain.verdict == "loss"
    ]
    merits = " and ".join(parts)
    if merits:
        merits += " against the default, beyond noise and forecast error"
    rescued = [name for name, value in chosen.default_violations.items() if value > 0]
    if rescued:
        limits = " and ".join(CONSTRAINTS.get(name, name) for name in rescued)
        merits = f"it keeps {limits}, which the default breaks{'; ' + merits if merits else ''}"
    if not merits:  # the default cannot run at all
        merits = "the default cannot run"
    if costs:
        merits += f"; the price is {' and '.join(costs)}"
    if chosen.close:
        limits = " and ".join(CONSTRAINTS.get(name, name) for name in chosen.close)
        merits += f"; {limits} is kept by less than forecast error"
    return merits


def _failing(first: Confirmation) -> str:
    if first.broken:
        limits = " and ".join(
            f"{CONSTRAINTS.get(name, name)} by {percent(value)}"
            for name, value in first.broken.items()
        )
        return f"the best policy found breaks {limits} on held-out traffic"
    if not first.gains:
        return "the best policy found cannot run on held-out traffic"
    gain = next((g for g in first.gains if g.verdict == "loss"), first.gains[0])
    if gain.verdict == "loss":
        return f"the best policy found loses on held-out traffic: {told_gain(gain)}"
    return f"the best policy found has {told_gain(gain)}, {gain.why}"


def nothing_kept(evaluations: Sequence[Evaluation]) -> str:
    """Return that no trial keeps the constraints, and which came closest."""
    run = [e for e in evaluations if e.infeasible is None and e.violations]
    if not run:
        reasons = [e.infeasible for e in evaluations if e.infeasible]
        why = f": {reasons[0]}" if reasons else ""
        return f"No candidate could be simulated{why}."
    closest = min(run, key=lambda e: sum(max(0.0, v) for v in e.violations.values()))
    missed = ", ".join(
        f"{CONSTRAINTS.get(name, name)} by {percent(value)}"
        for name, value in closest.violations.items()
        if value > 0
    )
    return (
        f"No candidate keeps the constraints; the closest ({told(closest.candidate)}) breaks "
        f"{missed}."
    )
