"""The answer of `twin cache` in a terminal and as CSV: hit rates, distance to the optimum."""

import csv
import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from twin.caching.comparison import CacheComparison
from twin.caching.question import BELADY
from twin.report.cache_summary import summary_line
from twin.report.numbers import percent

RATES = "Hit rate (% of block look-ups)"
BELOW = "Below Belady's optimum (points of hit rate)"


def print_cache(console: Console, found: CacheComparison) -> None:
    """Print hit rates by capacity and policy, and what the optimum has more."""
    for line in facts_lines(found):
        console.print(Text(line), soft_wrap=True)
    for title, headings, rows in (
        (RATES, rate_headings(found), rate_cells(found)),
        (BELOW, below_headings(found), below_cells(found)),
    ):
        if len(headings) == len(_capacity_headings(found)):
            continue  # nothing but the optimum was asked for
        table = Table(title=title, title_justify="left", padding=(0, 1))
        for heading in headings:
            table.add_column(heading, justify="right")
        for row in rows:
            table.add_row(*row)
        console.print(table)
    if line := summary_line(found):
        console.print(Text(line), soft_wrap=True)
    for note in found.notes:
        console.print(Text(f"Note: {note}"), soft_wrap=True)


def facts_lines(found: CacheComparison) -> list[str]:
    """Return what was looked up, in sentences."""
    accesses, question = found.accesses, found.question
    whose = "the trace's own blocks" if accesses.own_blocks else "full blocks"
    lines = [
        f"{found.trace}: {accesses.num_requests:,} requests look up {accesses.num_lookups:,} "
        f"blocks of {accesses.block_tokens:,} tokens ({whose}), {accesses.num_distinct:,} of them "
        f"different; the largest request has {accesses.largest:,}.",
        f"Block reuse, the most any cache can hit: {percent(accesses.reuse)}.",
    ]
    if question.token_bytes:
        lines.append(f"KV of {question.llm}: {question.token_bytes / 1e3:,.1f} kB a token.")
    pool = question.pool
    if pool is not None:
        several = f"{pool.tp} x {pool.gpu} together" if pool.tp > 1 else f"one {pool.gpu}"
        lines.append(
            f"{found.pool_blocks:,} blocks are the KV pool of {several} with {pool.llm} under "
            "vLLM's defaults (--llm and --gpu name others)."
        )
    return lines


def _capacity_headings(found: CacheComparison) -> list[str]:
    return ["blocks", "GB"] if found.question.token_bytes else ["blocks"]


def _capacity_cells(found: CacheComparison, place: int) -> list[str]:
    blocks, num_bytes = found.question.capacities_blocks[place], found.capacity_bytes(place)
    return [f"{blocks:,}", *([] if num_bytes is None else [f"{num_bytes / 1e9:,.1f}"])]


def rate_headings(found: CacheComparison) -> list[str]:
    """Return the headings of the hit rates: the optimum last."""
    return [*_capacity_headings(found), *found.replays]


def rate_cells(found: CacheComparison) -> list[list[str]]:
    """Return a row of hit rates for each capacity."""
    return [
        [
            *_capacity_cells(found, place),
            *(f"{100 * found.hit_rate(policy, place):.2f}" for policy in found.replays),
        ]
        for place in range(len(found.question.capacities_blocks))
    ]


def below_headings(found: CacheComparison) -> list[str]:
    """Return the headings of the distances."""
    return [*_capacity_headings(found), *_policies(found)]


def below_cells(found: CacheComparison) -> list[list[str]]:
    """Return a row of distances to the optimum for each capacity."""
    return [
        [
            *_capacity_cells(found, place),
            *(f"{100 * found.below_optimum(policy, place):.2f}" for policy in _policies(found)),
        ]
        for place in range(len(found.question.capacities_blocks))
    ]


def _policies(found: CacheComparison) -> list[str]:
    return [policy for policy in found.replays if policy != BELADY]


def cache_csv(found: CacheComparison) -> str:
    """Return one line a capacity and policy, with a heading."""
    rows, text = found.as_rows(), io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
