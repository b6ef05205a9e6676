"""Write docs/audit.md from what the audit measured.

`python -m tests.audit.report` measures whole traces and the closed-loop rows anew; `--only rows`
(or traces) measures just those; `--only none` only writes. Figures of the tests come from the
last `make audit`.
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

if __package__ in (None, ""):  # run by path
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.audit import records
from tests.audit.forecasts import KV_DTYPES
from tests.audit.measure import SECTIONS
from tests.audit.whole_traces import TRACE_RUNS
from twin.files import write_text

TARGET = records.ROOT / "docs" / "audit.md"
COMMAND = "python -m tests.audit.report"
NOT_MEASURED = "Not measured yet."
FULL = 0.98
"""Share of KV blocks in use from which the cache counts as full."""


def table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a Markdown table, the first column to the left."""
    heads = list(heads)
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *(list(map(str, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def milliseconds(seconds: float) -> str:
    """Return a time in ms with three digits, in s from 10 s."""
    if seconds >= 10:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.{1 if seconds < 0.1 else 0}f} ms"


def traces() -> str:
    """Whole production traces."""
    rows = []
    for name, run in TRACE_RUNS.items():
        found = records.read(f"trace-{name}")
        if found is None:
            continue
        rows.append(
            [
                run.title,
                f"{found['requests']:,}",
                f"{found['finished']:,}",
                found["rejected"],
                f"{found['steps']:,}",
                f"{found['simulated_s']:,.0f}",
                f"{found['cpu_s']:.1f}",
                milliseconds(found["ttft_s"]["p50"]),
                milliseconds(found["ttft_s"]["p99"]),
                f"{found['prefix_cache_hit_rate']:.1%}",
                f"{found['preemptions']:,}",
            ]
        )
    heads = (
        "trace", "requests", "finished", "rejected", "steps", "simulated s", "CPU s",
        "TTFT P50", "TTFT P99", "hit rate", "preemptions",
    )  # fmt: skip
    return f"""## Whole production traces

The `chat-h100` example (Llama-3.1-8B, H100) with the trace as its load; rejected are the rows whose
prompt and answer exceed the network's context of 131,072 tokens, and nothing else is lost. CPU
seconds are those of the simulation alone (reading the trace left out), one process, on two shared
cores; the latencies are forecasts, nobody measured them.

{table(heads, rows) if rows else NOT_MEASURED}

Regenerate: `{COMMAND} --only traces`. `make audit` runs each twice through the
command, with other hash seeds, and compares the JSON byte for byte.
"""


def error_row(name: str, rows: list[dict[str, Any]]) -> list[str]:
    """Return absolute errors (median / mean / P90) and bias of TPOT and TTFT, per cent."""
    cells = [name, str(len(rows))]
    for metric in ("tpot_s", "ttft_s"):
        pairs = np.array([row[metric] for row in rows])
        signed = pairs[:, 1] / pairs[:, 0] - 1
        size = np.abs(signed)
        figures = (np.median(size), size.mean(), np.percentile(size, 90))
        cells += [" / ".join(f"{100 * value:.1f}" for value in figures), f"{signed.mean():+.1%}"]
    return cells


def closed_loop_rows() -> str:
    """Closed-loop measurements."""
    found = records.read("closed-loop")
    if found is None:
        return f"## Against closed-loop measurements\n\n{NOT_MEASURED}\n"
    lines = []
    for dtype in KV_DTYPES:
        rows = [row for row in found if row["kv_cache_dtype"] == dtype]
        lines.append(error_row(f"**KV {dtype}, all**", rows))
        limited = [row for row in rows if row["kv_usage"] > FULL]
        free = [row for row in rows if row["kv_usage"] <= FULL]
        lines.append(error_row(f"KV {dtype}, cache not full", free))
        if limited:
            lines.append(error_row(f"KV {dtype}, cache full", limited))
        for isl, osl in sorted({(row["isl"], row["osl"]) for row in rows}):
            part = [row for row in rows if (row["isl"], row["osl"]) == (isl, osl)]
            lines.append(error_row(f"KV {dtype}, {isl}/{osl}", part))
        for tp in sorted({row["tp"] for row in rows}):
            part = [row for row in rows if row["tp"] == tp]
            lines.append(error_row(f"KV {dtype}, tp {tp}", part))
    heads = ("rows", "number", "TPOT %", "bias", "TTFT %", "bias")
    return f"""## Against closed-loop measurements

Every vLLM row of `silicon/hopper_serving_dev.csv` with a dense network: Llama-3.1-70B FP8 on H200,
tp 1 to 8, 4 to 64 requests in flight, lengths uniform on [0.8 L, L], 10 requests a client, prefix
caching off, engine defaults of 0.33.0 (the rows name no version). Absolute errors of the mean TPOT
and TTFT in per cent, median / mean / P90, and the mean signed error.

Costs are fitted with a part of these very rows: they are one of the fitted groups, so this table
is a check of the whole simulator and no proof of the costs. Errors with the group left out of the
fit, and with the flags and version that the runs most likely had, stand in
[accuracy](accuracy.md).

{table(heads, lines)}

The rows name no KV dtype either. `auto` (bf16 for this checkpoint) is the engine's default; where
it fills the cache, and only there, the two differ much, and the measurements side with fp8:

{kv_dtypes(found)}

Regenerate: `{COMMAND} --only rows`.
"""


def kv_dtypes(found: list[dict[str, Any]]) -> str:
    """Return measured and forecast means of the rows whose cache fills with dtype `auto`."""
    keys = ("isl", "osl", "concurrency", "tp")
    by_dtype = {
        dtype: {
            tuple(row[key] for key in keys): row for row in found if row["kv_cache_dtype"] == dtype
        }
        for dtype in KV_DTYPES
    }
    lines = []
    for place, auto in sorted(by_dtype["auto"].items()):
        if auto["kv_usage"] <= FULL:
            continue
        isl, osl, concurrency, tp = place
        cells = [f"{isl}/{osl}, {concurrency} in flight, tp {tp}"]
        for metric in ("ttft_s", "tpot_s"):
            forecasts = [by_dtype[dtype][place][metric][1] for dtype in KV_DTYPES]
            cells += [milliseconds(value) for value in (auto[metric][0], *forecasts)]
        lines.append(cells)
    heads = ["row"]
    for metric in ("TTFT", "TPOT"):
        heads += [f"{metric} measured", *KV_DTYPES]
    return table(heads, lines)


def queueing() -> str:
    """Queue waits against theory."""
    found = records.read_all("queue-")
    rows = []
    for name, figures in found.items():
        kind, utilisation = name.split("-")
        rows.append(
            [
                f"M/{kind[1]}/1, utilisation {utilisation}",
                f"{figures['requests']:,}",
                f"{figures['expected_s'] * 1e3:.2f} ms",
                f"{figures['mean_s'] * 1e3:.2f} ± {figures['standard_error_s'] * 1e3:.2f} ms",
                f"{(figures['mean_s'] / figures['expected_s'] - 1):+.1%}",
            ]
        )
    heads = ("queue", "requests", "Pollaczek-Khinchine", "simulated", "difference")
    little = records.read("little")
    law = (
        f"Little's law on a batching server: {little['counted']:.2f} requests counted in the engine"
        f" on average, {little['expected']:.2f} expected.\n\n"
        if little
        else ""
    )
    return f"""## Queue waits

One server (max_num_seqs 1), Poisson arrivals, service times taken from lone requests; the mean wait
over 12 seeds, with its standard error, against the formula. It tests arrivals, queue and clock
together, and no GPU model. The seeds are the same in each row, so their differences are alike.

{table(heads, rows) if rows else NOT_MEASURED}

{law}Regenerate: `pytest -m audit tests/audit/test_queueing.py`, then `{COMMAND} --only none`.
"""


def effort() -> str:
    """How much was tried."""
    return f"""## Random examples and stopped runs

Property tests of engine and scheduler, on five times their usual examples:

{examples_table()}

Runs of `twin simulate --out --json` stopped at random moments. `make audit` fails unless after
every stop each output is whole or absent, an older complete folder is still complete, nothing else
is left but hidden temporary names (after SIGINT not even those), and a rerun succeeds:

{kills_table()}

Regenerate: `make audit`, then `{COMMAND} --only none`.
"""


def examples_table() -> str:
    """Return how many examples each property test ran."""
    examples = records.read_all("examples-")
    if not examples:
        return NOT_MEASURED
    lines = [[f"`{name}`", f"{number:,}"] for name, number in examples.items()]
    return table(("property", "examples"), [*lines, ["all", f"{sum(examples.values()):,}"]])


def kills_table() -> str:
    """Return how many runs were stopped, and what that left."""
    kills = records.read_all("kills-")
    if not kills:
        return NOT_MEASURED
    counts = ("tried", "stopped", "leftovers")
    lines = [
        [*name.split("-"), *(figures[key] for key in counts)] for name, figures in kills.items()
    ]
    sums = [sum(figures[key] for figures in kills.values()) for key in counts]
    heads = ("signal", "folder before", "runs", "stopped in time", "hidden names left")
    return table(heads, [*lines, ["all", "", *sums]])


def searches() -> str:
    """Killed workers, and samplers against each other."""
    return f"""## Searches

Workers of a search killed with SIGKILL at random moments, at times the command with all of them,
which is then started again. Each time it completed with exactly the trials asked for, none lost,
none counted twice:

{killed_searches()}

NSGA-II against random draws at equal trials on a small real problem (goodput per GPU-hour and P99
TTFT of a burst on up to four H100): hypervolume as a share of the box that the front of all runs
spans.

{samplers()}
"""


def killed_searches() -> str:
    """Return what kills left of searches."""
    found = records.read_all("killed-search-")
    if not found:
        return NOT_MEASURED
    keys = ("trials", "kills", "restarts", "tried_again")
    heads = ("kept in", "trials", "kills", "of these with the command", "trials begun again")
    return table(heads, ([name, *(row[key] for key in keys)] for name, row in found.items()))


def samplers() -> str:
    """Return hypervolumes by seed."""
    found = records.read("search-samplers")
    if found is None:
        return NOT_MEASURED
    rows = [[name, *(f"{x:.3f}" for x in found[name])] for name in ("nsga2", "random")]
    text = table([f"{found['trials']} trials, seed", *map(str, range(found["seeds"]))], rows)
    return f"{text}\n\nNSGA-II is ahead on {found['wins']} of {found['seeds']} seeds."


def document() -> str:
    """Return docs/audit.md."""
    parts = (traces(), closed_loop_rows(), queueing(), effort(), searches())
    head = f"""# Audit

What takes longer than the tests: `make audit` checks, `{COMMAND}` measures and
writes this page. Both need the measured data (`SERVETWIN_DATA`).
"""
    return "\n".join((head, *parts))


def main() -> None:
    """Measure what was asked for and write the page."""
    parser = argparse.ArgumentParser(description="Regenerate docs/audit.md.")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections to measure, or none")
    asked = [name for name in parser.parse_args().only.split(",") if name != "none"]
    unknown = [name for name in asked if name not in SECTIONS]
    if unknown:
        parser.error(f"unknown section {unknown[0]!r}; choose from {', '.join(SECTIONS)}, none")
    for name in asked:
        SECTIONS[name]()
    write_text(TARGET, document())


if __name__ == "__main__":
    main()
