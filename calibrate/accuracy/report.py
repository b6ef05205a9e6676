"""The accuracy of the twin over a table of rows: on screen and as JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from calibrate.accuracy.groups import CLASSES, Errors, Group, group_of, groups
from calibrate.accuracy.predict import Prediction
from calibrate.accuracy.recipes import recipe_of
from hwmodels.serving_fits import SERVING_FITS

_COLUMNS = (
    "rows", "n", "predicted", "TPOT median", "mean", "P90", "bias", "TTFT median", "mean", "P90",
    "bias",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judgement:
    """Predictions of a table's rows.

    Attributes:
        fitted: with the committed costs.
        held_out: the same rows with costs fitted without the row's group. Rows of groups that no
            fit ever saw are as in `fitted`.
        seen: whether a fit saw the row's group, aligned with both.
    """

    fitted: list[Prediction]
    held_out: list[Prediction]
    seen: list[bool]


def class_groups(predictions: Sequence[Prediction]) -> list[Group]:
    """Return one group a class of rows, and one of all."""
    found = [
        group_of(name, [p for p in predictions if belongs(p)]) for name, belongs in CLASSES.items()
    ]
    return [*found, group_of("all", predictions)]


def unsaturated_groups(predictions: Sequence[Prediction]) -> list[Group]:
    """Return the groups over their unsaturated rows alone."""
    calm = CLASSES["dense, unsaturated"], CLASSES["MoE, unsaturated"]
    return groups([p for p in predictions if any(belongs(p) for belongs in calm)])


def as_json(judgement: Judgement) -> dict[str, Any]:
    """Return the judgement as plain data; errors are per cent."""
    predictions = judgement.fitted
    return {
        "schema_version": 1,
        "rows": len(predictions),
        "groups": [_group(group) for group in groups(predictions)],
        "overall": _figures(group_of("all", predictions)),
        "unsaturated_groups": [_group(group) for group in unsaturated_groups(predictions)],
        "classes": {group.name: _figures(group) for group in class_groups(predictions)},
        "held_out": {
            "never_seen_rows": judgement.seen.count(False),
            "groups": [_group(group) for group in groups(judgement.held_out)],
            "unsaturated_groups": [
                _group(group) for group in unsaturated_groups(judgement.held_out)
            ],
            "overall": _figures(group_of("all", judgement.held_out)),
            "classes": {g.name: _figures(g) for g in class_groups(judgement.held_out)},
        },
        "not_predicted": [{"id": p.row.row_id, "why": p.why_not} for p in predictions if p.why_not],
        "points": [_point(p, h) for p, h in zip(predictions, judgement.held_out, strict=True)],
        "fit": {key: SERVING_FITS[key] for key in ("fitted_on", "groups", "values")},
    }


def print_report(judgement: Judgement, console: Console) -> None:
    """Print classes, groups and what could not be predicted."""
    fitted, held_out = judgement.fitted, judgement.held_out
    console.print(_table("Classes of rows, fitted", class_groups(fitted)))
    console.print(_table("Classes of rows, each group held out", class_groups(held_out)))
    console.print(_table("Groups, unsaturated rows, held out", unsaturated_groups(held_out)))
    console.print(_table("Groups, all rows, held out", groups(held_out)))
    why = Counter(_reason(p) for p in fitted if p.why_not)
    for reason, count in why.most_common():
        console.print(f"not predicted, {count} rows: {reason}")
    console.print(
        "Errors are absolute per cent; bias is the median signed one. Held out: the costs were "
        "fitted on the other groups. Saturated: more than 64 clients, or KV cache or server "
        "process is what limits."
    )


def _reason(prediction: Prediction) -> str:
    """The message without the place in the file."""
    return prediction.why_not.replace(f"{prediction.row.where}: ", "")


def _table(title: str, found: Sequence[Group]) -> Table:
    table = Table(title=title, title_justify="left")
    for column in _COLUMNS:
        table.add_column(column, justify="left" if column == "rows" else "right")
    for group in found:
        table.add_row(
            group.name,
            str(group.n),
            str(group.predicted),
            *_cells(group.tpot),
            *_cells(group.ttft),
        )
    return table


def _cells(errors: Errors) -> list[str]:
    values = (errors.median, errors.mean, errors.p90)
    shown = ["–" if value is None else f"{value:.1f}" for value in values]
    return [*shown, "–" if errors.bias is None else f"{errors.bias:+.1f}"]


def _group(group: Group) -> dict[str, Any]:
    key = group.key or ("", "", "", "")
    names = dict(zip(("gpu", "engine", "model", "precision"), key, strict=True))
    return {**names, **_figures(group)}


def _figures(group: Group) -> dict[str, Any]:
    return {
        "n": group.n,
        "predicted": group.predicted,
        "tpot": group.tpot.as_dict(),
        "ttft": group.ttft.as_dict(),
    }


def _point(fitted: Prediction, held_out: Prediction) -> dict[str, Any]:
    row = fitted.row
    named = ("row_id", "isl", "osl", "concurrency", "tp", "attention_dp", "ep")
    data = {name: value for name, value in asdict(row).items() if name in named}
    kind = next((name for name, belongs in CLASSES.items() if belongs(fitted)), "")
    return {
        **data,
        "class": kind,
        "ttft_ms": _ms(row.ttft_s),
        "tpot_ms": _ms(row.tpot_s),
        "fitted_ttft_ms": _ms(fitted.ttft_s),
        "fitted_tpot_ms": _ms(fitted.tpot_s),
        "held_out_ttft_ms": _ms(held_out.ttft_s),
        "held_out_tpot_ms": _ms(held_out.tpot_s),
        "assumed": list(recipe_of(row).assumed),
    }


def _ms(seconds: float) -> float | None:
    return round(1e3 * seconds, 4) if seconds == seconds else None
