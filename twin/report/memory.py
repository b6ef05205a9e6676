"""The answer of `twin memory` in a terminal: layout, rows by block size and dtype, heat map."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from twin.memory.claims import Claim
from twin.memory.explanation import MemoryExplanation
from twin.memory.rows import BYTE_KINDS, MemoryRow
from twin.report.charts.memory import KIND_TITLES
from twin.report.numbers import MISSING, count, percent, significant
from twin.units import format_bytes

SIZE_HEADINGS = (
    "block", "KV", "block bytes", "fragment", "page visit", "DRAM B/token", "sectors", "tail",
    "capacity",
)  # fmt: skip
STEP_HEADINGS = (
    "block", "KV", "pages", "L1 misses", "L2 misses", "walks", "kernel us", "added us", "paging",
)  # fmt: skip

SIZES = "Sizes, what one layer reads from DRAM, and the useful share of sectors"
STEP = "Attention of one layer in one decode step"
SHARES = "Where KV bytes go (% of all five kinds together, one layer)"
PRETENDED = (
    "Durations and constants are pretended: the profile comes from a dry run, nothing was measured."
)

_SHADES = (" ", "░", "▒", "▓", "█")
_CONSTANTS = {
    "tlb_l3_reach_bytes": "last TLB reaches",
    "walk_cycles": "page walk",
    "walkers": "walkers",
    "dram_cycles": "DRAM latency",
}


NOT_IN_POLICIES = ("int4",)
"""KV dtypes of rows that no engine's policy can have."""


def print_memory(console: Console, found: MemoryExplanation) -> None:
    """Print what a scenario's KV layout means."""
    for line in facts_lines(found):
        console.print(Text(line), soft_wrap=True)
    console.print(_table(SIZES, SIZE_HEADINGS, size_cells(found.rows)))
    console.print(_table(STEP, STEP_HEADINGS, step_cells(found.rows)))
    console.print(_heat_map(found))
    for note in notes_of(found):
        console.print(Text(f"Note: {note}"), soft_wrap=True)


def print_claims(console: Console, claims: Sequence[Claim]) -> None:
    """Print claims beside what the models compute."""
    table = Table(title="What is claimed, and what the models compute", title_justify="left")
    for heading in ("id", "claimed", "computed", "verdict"):
        table.add_column(heading, overflow="fold")
    for claim in claims:
        table.add_row(claim.id, claim.claimed, claim.computed, claim.verdict)
    console.print(table)


def facts_lines(found: MemoryExplanation) -> list[str]:
    """Return layout and batch in sentences."""
    layout, batch = found.layout, found.batch
    return [
        f"{found.name} · {found.llm} · {found.gpu} · tp {found.tp}",
        *([PRETENDED] if found.pretended else []),
        f"KV layout: {layout.pools}, {layout.order}, {found.kv_dtype}, blocks of "
        f"{layout.block_tokens} tokens: {format_bytes(layout.block_bytes)} a block, "
        f"{format_bytes(layout.fragment_bytes)} of it in one place, "
        f"{format_bytes(layout.bytes_per_page_visit)} a page visit.",
        f"Pool {format_bytes(layout.pool_bytes)} in {layout.num_blocks:,} blocks; one kernel "
        f"reaches over {format_bytes(layout.slab_bytes)}.",
        f"Batch: the first {batch.seqs:,} of {batch.known:,} requests known at the start, halfway "
        f"through their answers, {batch.tokens:,} KV tokens.",
        *_fewest(found.rows),
    ]


def _fewest(rows: Sequence[MemoryRow]) -> list[str]:
    """Name the rows that read fewest bytes from DRAM, and those of dtypes that a policy may have.

    No sentence where there are no rows.
    """
    allowed = [row for row in rows if row.kv_dtype not in NOT_IN_POLICIES]
    said = list(dict.fromkeys(_fewest_of(some) for some in (rows, allowed) if some))
    if not said:
        return []
    rest = f" Of dtypes that a policy may have: {said[1]}." if len(said) > 1 else ""
    return [f"Fewest bytes from DRAM for a KV token and layer: {said[0]}.{rest}"]


def _fewest_of(rows: Sequence[MemoryRow]) -> str:
    least = min(row.dram_bytes_per_token for row in rows)
    dtypes: dict[str, list[str]] = {}
    for row in rows:
        if row.dram_bytes_per_token == least:
            dtypes.setdefault(row.kv_dtype, []).append(str(row.block_tokens))
    by_sizes: dict[str, list[str]] = {}
    for dtype, sizes in dtypes.items():
        by_sizes.setdefault(", ".join(sizes), []).append(dtype)
    names = [f"{' and '.join(of)} in blocks of {sizes}" for sizes, of in by_sizes.items()]
    return f"{count(least)} B, {' or '.join(names)}"


def size_cells(rows: Sequence[MemoryRow]) -> list[list[str]]:
    """Return the cells of each row, in the order of `SIZE_HEADINGS`."""
    return [
        [
            str(row.block_tokens),
            row.kv_dtype,
            format_bytes(row.block_bytes),
            format_bytes(row.fragment_bytes),
            format_bytes(row.bytes_per_page_visit),
            count(row.dram_bytes_per_token),
            percent(row.sector_efficiency),
            percent(row.tail_waste),
            count(row.capacity_tokens),
        ]
        for row in rows
    ]


def step_cells(rows: Sequence[MemoryRow]) -> list[list[str]]:
    """Return the cells of each row, in the order of `STEP_HEADINGS`."""
    return [
        [
            str(row.block_tokens),
            row.kv_dtype,
            count(row.pages),
            count(row.l1_misses),
            count(row.l2_misses),
            count(row.walks),
            significant(1e6 * row.kernel_s),
            _added(row),
            _kappa(row),
        ]
        for row in rows
    ]


def notes_of(found: MemoryExplanation) -> list[str]:
    """Return what to keep in mind, the constants nobody measured first."""
    fit, notes = found.fit, [PRETENDED] if found.pretended else []
    for name, title in _CONSTANTS.items():
        if name in fit.measured:
            continue
        value, interval = getattr(fit, name), fit.interval_of(name)
        if value is None or interval is None:
            notes.append(f"{title}: unknown on {found.gpu}")
            continue
        text = f"{title} {_quantity(name, value)}"
        if interval[0] < interval[1]:
            text += f" ({_quantity(name, interval[0])} to {_quantity(name, interval[1])})"
        said = f"not measured on {found.gpu}; {fit.source_of(name)}"
        notes.append(f"{text}: {'pretended by a dry run' if name in fit.pretended else said}")
    notes.append("added us: at the constants above, and in brackets at the ends of their intervals")
    if any(row.kv_dtype == "int4" for row in found.rows):
        notes.append(
            "int4: groups of 32 with scale and zero point; pages of scales are not counted"
        )
    return [*notes, *found.notes]


def _quantity(name: str, value: float) -> str:
    if name.endswith("_bytes"):
        return f"{significant(value / 1e9)} GB"
    return f"{significant(value)} cycles" if name.endswith("_cycles") else significant(value)


def _added(row: MemoryRow) -> str:
    middle, least, most = (
        significant(1e6 * s) for s in (row.added_s, row.added_least_s, row.added_most_s)
    )
    return middle if least == middle == most else f"{middle} ({least} to {most})"


def _kappa(row: MemoryRow) -> str:
    least = MISSING if row.kappa_least is None else f"{row.kappa_least:.3f}"
    return f"{least} to {row.kappa_most:g}"


def _heat_map(found: MemoryExplanation) -> Table:
    """Shares by kind, darker where more; the shade is told by its character too."""
    table = Table(title=SHARES, title_justify="left")
    table.add_column("block", justify="right")
    table.add_column("KV")
    for kind in BYTE_KINDS:
        table.add_column(KIND_TITLES[kind], justify="right")
    for row, share in zip(found.rows, found.shares, strict=True):
        table.add_row(str(row.block_tokens), row.kv_dtype, *(_shaded(share[k]) for k in BYTE_KINDS))
    return table


def _shaded(share: float) -> str:
    """Steps at 1, 5, 20 and 50 %."""
    step = sum(share >= limit for limit in (0.01, 0.05, 0.2, 0.5))
    return f"{_SHADES[step] * 2} {100 * share:5.1f}"


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[Any]]) -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(*row)
    return table
