"""What `measure` prints when it ends."""

from collections import Counter
from pathlib import Path

from rich.console import Console

from calibrate.measuring.journal import Kept
from calibrate.measuring.results import CSV
from calibrate.measuring.session import DRY_RUN
from calibrate.measuring.suite import Outcome
from hwmodels.measured.tables import kernel_of

PRETENDED = "DRY RUN: all seconds are pretended; nothing here was measured"


def print_summary(folder: Path, kept: Kept, outcome: Outcome, seconds: float) -> None:
    """Print how many rows there are, of which tables, and what is missing and why."""
    console = Console(highlight=False, soft_wrap=True)
    for line in summary_lines(folder, kept, outcome, seconds):
        console.print(line, markup=False)


def summary_lines(folder: Path, kept: Kept, outcome: Outcome, seconds: float) -> list[str]:
    """Return the summary as lines."""
    tables = Counter(kernel_of(key.table) for key in kept.rows)
    lines = [PRETENDED] if kept.engine == DRY_RUN else []
    lines += [
        f"{kept.facts.get('title', 'GPU')}: {outcome.measured} rows in {seconds:.0f} s"
        + (f", {outcome.already} from before" if outcome.already else ""),
        "rows: " + ", ".join(f"{name} {count}" for name, count in sorted(tables.items())),
    ]
    for reason, count in outcome.reasons.most_common():
        first = next(item for item, why in outcome.skipped.items() if why == reason)
        more = f" and {count - 1} more" if count > 1 else ""
        lines.append(f"skipped, {reason}: {first}{more}")
    if outcome.discarded:
        lines.append(f"discarded, the reference read drifted: {len(outcome.discarded)} rows")
    if outcome.not_reached:
        lines.append(
            f"no time left for {outcome.not_reached} items; the same command goes on with them"
        )
    if outcome.lost:
        lines.append(f"stopped, the GPU no longer answers: {outcome.lost}; run it again to go on")
    if kept.rows:
        lines.append(f"{folder / CSV}; next: twin-calibrate fit {folder} --out profile.npz")
    return lines
