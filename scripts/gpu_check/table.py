"""What the steps found, as a short table: each bar, whether it is kept, and the seconds taken."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RAN, FAILED, CUT = "ran", "failed", "cut"
KEPT, MISSED, OPEN, PRETENDED = "kept", "MISSED", "not judged", "pretended"

VALIDATED_PCT = 5.0


@dataclass(frozen=True)
class Outcome:
    """How a step went: `RAN`, `FAILED` or `CUT`, and why."""

    status: str
    seconds: float
    reason: str = ""


@dataclass(frozen=True)
class Line:
    """One bar: what was found, what is asked, and `KEPT`, `MISSED`, `OPEN` or `PRETENDED`."""

    what: str
    found: str
    bar: str
    state: str


def lines_of(
    out: Path, outcomes: Mapping[str, Outcome], policies: Sequence[str], *, dry_run: bool
) -> list[Line]:
    """Return a line for every bar.

    A bar of something that did not run is missed. In a dry run all figures but those of the
    kernels are pretended.
    """
    lines = [_kernels(out, outcomes["kernels"])]
    lines += _fit(read_json(out / "fit.json"), outcomes["fit"], dry_run=dry_run)
    lines += [
        _validation(
            name,
            read_json(out / f"validate-{name}.json"),
            outcomes[f"validate-{name}"],
            dry_run=dry_run,
        )
        for name in policies
    ]
    told = {"kernels", "fit", *(f"validate-{name}" for name in policies)}
    lines += [
        Line(name, _why(outcome), "runs", MISSED)
        for name, outcome in outcomes.items()
        if name not in told and outcome.status != RAN
    ]
    return lines


def text_of(
    lines: Sequence[Line], outcomes: Mapping[str, Outcome], elapsed_s: float, *, dry_run: bool
) -> str:
    """Return the table."""
    rows = [(line.what, line.found, line.bar, line.state) for line in lines]
    rows.insert(0, ("what", "found", "bar", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    said = [
        "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]).rstrip()
        for row in rows
    ]
    taken = ", ".join(f"{name} {outcome.seconds:.0f}" for name, outcome in outcomes.items())
    said.append(f"seconds: {elapsed_s:.0f} in all; {taken}")
    if dry_run:
        said.append("DRY RUN: only the kernels were checked; every time was pretended.")
    return "\n".join(["", *said])


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file; empty if there is none, or it is not whole."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def _kernels(out: Path, outcome: Outcome) -> Line:
    """Cases against their oracles; errors as a share of what is tolerated."""
    cases = [
        json.loads(text)
        for path in sorted(out.glob("kernels.*.out"))
        for text in path.read_text(encoding="utf-8").splitlines()
        if text.startswith("{") and text.endswith("}")
    ]
    cases = [case for case in cases if "status" in case]
    run = [case for case in cases if case["status"] != "skip"]
    failed = [case for case in run if case["status"] != "ok"]
    shares = [
        (case["error"] / case["tolerance"], case)
        for case in run
        if case.get("error") is not None and case.get("tolerance")
    ]
    found = f"{len(run)} cases, {len(failed)} failed"
    if shares:
        share, worst = max(shares, key=lambda one: one[0])
        found += f"; worst error {share:.0%} of tolerance ({worst['kernel']} {worst['dtype']})"
    if failed:
        found += f"; first: {failed[0]['kernel']} {failed[0]['dtype']} {failed[0].get('reason')}"
    if outcome.status != RAN:
        found += f"; {_why(outcome)}"
    kept = outcome.status == RAN and bool(run) and not failed
    return Line("kernels against oracles", found, "none fails", KEPT if kept else MISSED)


def _fit(data: Mapping[str, Any], outcome: Outcome, *, dry_run: bool) -> list[Line]:
    if outcome.status != RAN:
        return [Line("held-out kernel errors", _why(outcome), "4 / 12 %", MISSED)]
    lines = []
    for family, judged in data.get("families", {}).items():
        bar, held = judged.get("bar"), judged.get("held_out")
        if bar is None:
            continue
        asked = f"median {bar['median_pct']:.0f} %, P90 {bar['p90_pct']:.0f} %"
        found = "too few rows"
        if held is not None:
            found = f"{held['median_pct']:.1f} / {held['p90_pct']:.1f} % of {held['rows']} rows"
        state = _state(judged.get("passes"), dry_run=dry_run)
        lines.append(Line(f"held-out {family}", found, asked, state))
    if not dry_run and all(line.state == OPEN for line in lines):
        lines.append(Line("held-out kernel errors", "no family was judged", "4 / 12 %", MISSED))
    paged = data.get("paged_decode") or {}
    share = paged.get("share_of_copy")
    found = "not measured" if share is None else f"{share:.0%} of copy, {paged['rows']} rows"
    state = _state(bool(paged.get("passes")), dry_run=dry_run)
    lines.append(Line("paged decode over 256 MB", found, f"{paged.get('bar', 0.85):.0%}", state))
    return lines


def _state(passes: bool | None, *, dry_run: bool) -> str:
    if dry_run:
        return PRETENDED
    return OPEN if passes is None else KEPT if passes else MISSED


def _validation(name: str, data: Mapping[str, Any], outcome: Outcome, *, dry_run: bool) -> Line:
    bar = f"median {VALIDATED_PCT:.0f} %, bias within it"
    if outcome.status != RAN or not data:
        return Line(f"validated {name}", _why(outcome), bar, MISSED)
    overall, (low, high) = data["overall"], data["bias_interval_pct"]
    found = (
        f"{overall['median_pct']:.1f} % of {overall['steps']} steps, "
        f"bias {low:+.1f} to {high:+.1f} %"
    )
    state = _state(data["verdict"] == "validated", dry_run=dry_run)
    return Line(f"validated {name}", found, bar, state)


def _why(outcome: Outcome) -> str:
    return f"{outcome.status}: {outcome.reason}" if outcome.reason else outcome.status
