"""The accuracy tables as Markdown, for the documentation."""

from collections.abc import Sequence

from calibrate.accuracy.ablation import Ablated
from calibrate.accuracy.groups import Errors, Group
from calibrate.accuracy.report import Judgement, class_groups, unsaturated_groups

_HEAD = (
    "rows", "n", "predicted", "TPOT median", "P90", "bias", "TTFT median", "P90", "bias",
)  # fmt: skip


def as_markdown(judgement: Judgement) -> str:
    """Return classes and groups, held out and fitted."""
    held_out, fitted = judgement.held_out, judgement.fitted
    parts = [
        ("Classes of rows, each group held out", class_groups(held_out)),
        ("Classes of rows, fitted", class_groups(fitted)),
        ("Groups, unsaturated rows, held out", unsaturated_groups(held_out)),
        ("Groups, unsaturated rows, fitted", unsaturated_groups(fitted)),
    ]
    return "\n".join(f"**{title}**\n\n{_groups(found)}" for title, found in parts)


def groups_markdown(found: Sequence[Group]) -> str:
    """Return one row a group."""
    return _groups(found)


def ablation_markdown(ablated: Sequence[Ablated]) -> str:
    """Return the median errors without each term, in per cent, and the change in points."""
    whole = {group.name: group for group in ablated[0].classes}
    names = [name for name, group in whole.items() if group.predicted]
    head = ["left out", *(f"{name}: {metric}" for name in names for metric in ("TPOT", "TTFT"))]
    rows = []
    for term in ablated:
        cells = [term.term]
        found = {group.name: group for group in term.classes}
        for name in names:
            cells += [
                _change(found[name].tpot, whole[name].tpot),
                _change(found[name].ttft, whole[name].ttft),
            ]
        rows.append(cells)
    return _table(head, rows)


def _change(now: Errors, whole: Errors) -> str:
    if now.median is None or whole.median is None:
        return "–"
    change = now.median - whole.median
    return f"{now.median:.1f}" if now is whole else f"{now.median:.1f} ({change:+.1f})"


def _groups(found: Sequence[Group]) -> str:
    rows = [[g.name, str(g.n), str(g.predicted), *_errors(g.tpot), *_errors(g.ttft)] for g in found]
    return _table(_HEAD, rows)


def _errors(errors: Errors) -> list[str]:
    if errors.median is None or errors.p90 is None or errors.bias is None:
        return ["–"] * 3
    return [f"{errors.median:.1f}", f"{errors.p90:.1f}", f"{errors.bias:+.1f}"]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
