"""Logs of compiled replicas written out: one row a step, one number a gap."""

from typing import Any

from twin.engine.compiled.instants import write_instants
from twin.engine.compiled.jit import compiled
from twin.engine.compiled.layout import GAPS, RUNS, STEPS
from twin.engine.compiled.memory import counters, gaps, policies, runs, steps, taken_of


@compiled
def step_rows(s: Any, out: Any, at_s: Any) -> None:
    """Write every step into `out` (of dtype STEP): single ones first, then those of runs.

    Args:
        s: where.
        out: as long as there are steps.
        at_s: room for the longest run, shape (steps, 5).
    """
    size = policies(s)[0].block_size
    end = counters(s)[STEPS]
    for index in range(end):
        out[index] = steps(s)[index]
    for number in range(counters(s)[RUNS]):
        run = runs(s)[number]
        write_instants(s, number, at_s)
        used = run.used_blocks
        for step in range(run.steps):
            used += taken_of(s)[run.taken_at + step % size]
            row = out[end]
            row.scheduled_s, row.start_s, row.end_s = at_s[step, 0], at_s[step, 1], at_s[step, 2]
            row.replica, row.prefill, row.decode = run.replica, 0, run.seqs
            row.running, row.waiting, row.used_blocks = run.seqs, run.waiting, used
            row.preempted, row.bound = 0, int(at_s[step, 4])
            end += 1


@compiled
def gap_counts(s: Any, out: Any) -> None:
    """Count the gaps of each replica."""
    for index in range(counters(s)[GAPS]):
        gap = gaps(s)[index]
        if gap.times >= 0:
            out[gap.replica] += gap.times
        else:
            run = runs(s)[int(gap.gap_s)]
            out[gap.replica] += (run.steps - 1) * run.seqs


@compiled
def write_gaps(s: Any, ends: Any, out: Any, at_s: Any) -> None:
    """Write all gaps into `out`, those of each replica from its place in `ends` on."""
    for index in range(counters(s)[GAPS]):
        gap = gaps(s)[index]
        end = ends[gap.replica]
        if gap.times >= 0:
            for _ in range(gap.times):
                out[end] = gap.gap_s
                end += 1
        else:
            number = int(gap.gap_s)
            write_instants(s, number, at_s)
            for step in range(1, runs(s)[number].steps):
                between_s = at_s[step, 3] - at_s[step - 1, 3]
                for _ in range(runs(s)[number].seqs):
                    out[end] = between_s
                    end += 1
        ends[gap.replica] = end
