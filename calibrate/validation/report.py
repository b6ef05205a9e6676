"""A verdict on screen."""

from rich.console import Console
from rich.table import Table

from twin.units import format_seconds
from twin.validation import ErrorFigures, ValidatedStep, Verdict

PRETENDED_LINE = "DRY RUN: measured times are pretended, nothing was measured."


def print_verdict(verdict: Verdict, console: Console) -> None:
    """Print errors by stratum, the interval, and what they mean."""
    if verdict.dry_run:
        console.print(PRETENDED_LINE, soft_wrap=True)
    console.print(_table(verdict))
    low, high = verdict.median_interval_pct
    under, over = verdict.bias_interval_pct
    console.print(
        f"95 % intervals: median error {low:.1f} to {high:.1f} %, bias {under:+.1f} to "
        f"{over:+.1f} %; steps stand for {verdict.covered_share:.0%} of the simulated GPU time"
        + (f"; {verdict.steps_dropped} had no time left" if verdict.steps_dropped else ""),
        soft_wrap=True,
        markup=False,
    )
    console.print(f"Left out on both sides: {'; '.join(verdict.left_out)}.", markup=False)
    console.print(verdict.durations, markup=False)
    console.print(_line(verdict), soft_wrap=True, markup=False)


def _table(verdict: Verdict) -> Table:
    pretended = " (pretended)" if verdict.dry_run else ""
    table = Table(title=f"{verdict.scenario} on {verdict.gpu}", title_justify="left")
    table.add_column("batches")
    for heading in (
        "GPU time", "steps", "predicted", f"measured{pretended}", "median error", "bias",
    ):  # fmt: skip
        table.add_column(heading, justify="right")
    for stratum in verdict.strata:
        mine = [step for step in verdict.steps if step.stratum == stratum.name]
        table.add_row(stratum.name, f"{stratum.share:.1%}", *_cells(stratum, mine))
    table.add_section()
    table.add_row(
        "all, by GPU time", f"{verdict.covered_share:.1%}", *_cells(verdict.overall, verdict.steps)
    )
    return table


def _cells(
    figures: ErrorFigures, steps: "list[ValidatedStep] | tuple[ValidatedStep, ...]"
) -> list[str]:
    count = max(1, len(steps))
    return [
        str(figures.steps),
        format_seconds(sum(step.predicted_s for step in steps) / count),
        format_seconds(sum(step.measured_s for step in steps) / count),
        f"{figures.median_pct:.1f} %",
        f"{figures.bias_pct:+.1f} %",
    ]


def _line(verdict: Verdict) -> str:
    if verdict.verdict != "pretended":
        reasons = f": {'; '.join(verdict.reasons)}" if verdict.reasons else ""
        return f"Verdict: {verdict.verdict}{reasons}."
    return "Verdict: pretended. Run it on the GPU without --dry-run for a real one."
