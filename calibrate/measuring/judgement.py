"""How well a profile fits its rows: on screen and as JSON."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from calibrate.measuring.fit import BARS, PAGED_SHARE, Fitted, Judged
from calibrate.measuring.summary import PRETENDED

PRETENDED_BAR = "pretended"
"""What a dry run says of a bar: neither kept nor missed."""

_WORDS = {True: "yes", False: "no", None: ""}


def print_judgement(fitted: Fitted, path: Path, console: Console) -> None:
    """Print errors by family, then by shape, the share of copy bandwidth, and what was fitted."""
    profile = fitted.profile
    if fitted.pretended:
        console.print(PRETENDED, soft_wrap=True)
    console.print(_families(fitted))
    groups = {name: error for name, error in profile.held_out.items() if ": " in name}
    if groups:
        console.print(_groups(groups))
    console.print(_paged_line(fitted), soft_wrap=True)
    for name in ("stream", "launch", "memory", "paging"):
        if name in profile.parameters:
            console.print(f"{name}: {_brief(profile.parameters[name])}", soft_wrap=True)
    rows = sum(len(table["seconds"]) for table in profile.tables.values())
    console.print(
        f"{path}: {profile.name}, {len(profile.tables)} tables, {rows} rows", soft_wrap=True
    )


def as_json(fitted: Fitted, path: Path) -> dict[str, Any]:
    """Return the judgement as plain data; errors are per cent."""
    profile, share = fitted.profile, fitted.paged_share
    return {
        "schema_version": 1,
        "profile": profile.name,
        "file": str(path),
        "gpu": profile.gpu,
        "pretended": fitted.pretended,
        "families": {judged.family: _plain(judged) for judged in fitted.families},
        "groups": {n: asdict(error) for n, error in profile.held_out.items() if ": " in n},
        "paged_decode": {
            "share_of_copy": None if share is None else round(share[0], 4),
            "rows": 0 if share is None else share[1],
            "bar": PAGED_SHARE,
            "passes": None if share is None else share[0] >= PAGED_SHARE,
        },
        "parameters": profile.parameters,
    }


def _plain(judged: Judged) -> dict[str, Any]:
    fitted, bar = judged.fitted, BARS.get(judged.family)
    return {
        "rows": judged.rows,
        "fitted": None
        if fitted is None
        else {"median_pct": round(fitted[0], 2), "p90_pct": round(fitted[1], 2)},
        "held_out": None if judged.held_out is None else asdict(judged.held_out),
        "bar": None if bar is None else {"median_pct": bar[0], "p90_pct": bar[1]},
        "passes": judged.passes,
    }


def _families(fitted: Fitted) -> Table:
    title = f"{fitted.profile.name}: error in per cent, median / P90"
    table = Table(title=title, title_justify="left")
    table.add_column("kernels")
    for heading in ("rows", "form, fitted rows", "held-out rows", "held out", "bar", "kept"):
        table.add_column(heading, justify="right")
    for judged in fitted.families:
        bar, held = BARS.get(judged.family), judged.held_out
        table.add_row(
            judged.family,
            f"{judged.rows:,}",
            "" if judged.fitted is None else _pair(*judged.fitted),
            "too few" if held is None else f"{held.rows:,}",
            "" if held is None else _pair(held.median_pct, held.p90_pct),
            "" if bar is None else _pair(*bar),
            PRETENDED_BAR if fitted.pretended and bar else _WORDS[judged.passes],
        )
    return table


def _groups(groups: dict[str, Any]) -> Table:
    table = Table(title="Held out, by shape", title_justify="left")
    for heading in ("shapes", "rows", "median / P90"):
        table.add_column(heading, justify="left" if heading == "shapes" else "right")
    for name, error in groups.items():
        table.add_row(name, f"{error.rows:,}", _pair(error.median_pct, error.p90_pct))
    return table


def _pair(median: float, p90: float) -> str:
    return f"{median:.1f} / {p90:.1f}"


def _paged_line(fitted: Fitted) -> str:
    if fitted.paged_share is None:
        return "paged decode against a copy: not measured (decode over 256 MB, and stream)"
    share, rows = fitted.paged_share
    kept = "kept" if share >= PAGED_SHARE else "missed"
    if fitted.pretended:
        kept = PRETENDED_BAR
    return (
        f"paged decode over 256 MB of KV and more: {share:.0%} of the measured copy bandwidth, "
        f"median of {rows} rows (bar {PAGED_SHARE:.0%}: {kept})"
    )


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_brief(one)}" for name, one in value.items())
    return f"{value:.4g}" if isinstance(value, float) else str(value)
