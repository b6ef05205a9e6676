"""Sweeps and sizings as a terminal shows them."""

from rich.console import Console
from rich.table import Table

from twin.report.numbers import count, load, percent, percentile_name, seconds, significant
from twin.sweep.first_to_break import first_to_break
from twin.sweep.knee import knee
from twin.sweep.limit import load_limit
from twin.sweep.sizing import SizedRun, Sizing
from twin.sweep.sizing_words import sizing_sentences
from twin.sweep.sweep import LoadSweep

HEADINGS = (
    ("load", "right"),
    ("TTFT P50", "right"),
    ("P99", "right"),
    ("ITL P99", "right"),
    ("goodput", "right"),
    ("tok/s", "right"),
    ("KV peak", "right"),
    ("preempted", "right"),
    ("SLO", "left"),
)
_JUDGED = {True: "met", False: "missed", None: "–"}


def print_sweep(console: Console, sweep: LoadSweep) -> None:
    """Print what a sweep says, then its figures."""
    for sentence in (load_limit(sweep).sentence, first_to_break(sweep).sentence):
        console.print(sentence, markup=False)
    console.print(knee_sentence(sweep), markup=False)
    table = Table(title=f"{sweep.name}, load in {sweep.unit}", title_justify="left")
    for heading, side in HEADINGS:
        table.add_column(heading, justify="right" if side == "right" else "left")
    for row in cells(sweep):
        table.add_row(*row)
    console.print(table)
    _print_notes(console, sweep.notes)


def cells(sweep: LoadSweep) -> list[list[str]]:
    """Return the table of a sweep, a row a load."""
    return [
        [
            load(point.offered, sweep.unit),
            seconds(point.ttft_p50_s),
            seconds(point.ttft_p99_s),
            seconds(point.itl_p99_s),
            significant(point.goodput_per_s),
            significant(point.output_tokens_per_s),
            percent(point.kv_peak),
            count(point.preemptions),
            _JUDGED[point.slo.met] + (", queue grows" if point.queue_grows else ""),
        ]
        for point in sweep.points
    ]


def knee_sentence(sweep: LoadSweep) -> str:
    """Return where goodput bends off, in words."""
    bend = knee(sweep)
    if bend.low is None:
        return (
            f"Goodput does not follow the load even at {load(bend.high, sweep.unit)} {sweep.unit}."
        )
    low = f"{load(bend.low, sweep.unit)} {sweep.unit}"
    if bend.high is None:
        return f"Goodput follows the load throughout, up to {low}."
    return (
        f"Knee: goodput follows the load up to {low}, no longer at {load(bend.high, sweep.unit)}."
    )


def print_sizing(console: Console, sizing: Sizing) -> None:
    """Print how many replicas are needed, then what each number gave."""
    for sentence in sizing_sentences(sizing):
        console.print(sentence, markup=False)
    name = percentile_name(sizing.slo.percentile)
    table = Table(title=f"{sizing.name} by replicas", title_justify="left")
    for heading in ("replicas", "GPUs", f"{name} TTFT", f"{name} TPOT", "goodput", "KV peak"):
        table.add_column(heading, justify="right")
    table.add_column("SLO")
    for run in sizing.runs:
        table.add_row(*_sized_cells(run, sizing.gpus_a_replica))
    console.print(table)
    _print_notes(console, sizing.notes)


def _sized_cells(run: SizedRun, gpus_a_replica: int) -> list[str]:
    return [
        count(run.replicas),
        count(run.replicas * gpus_a_replica),
        seconds(run.slo_ttft_s),
        seconds(run.slo_tpot_s),
        significant(run.goodput_per_s),
        percent(run.kv_peak),
        _JUDGED[run.slo.met],
    ]


def _print_notes(console: Console, notes: tuple[str, ...]) -> None:
    for note in notes:
        console.print(f"Note: {note}", markup=False)
