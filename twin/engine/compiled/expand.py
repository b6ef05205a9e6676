"""Logs of compiled replicas written out: one row a step, one number a gap."""

from typing import Any

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.layout import GAPS, RUNS, STEPS
from twin.engine.compiled.memory import counters, gaps, pieces, policies, runs, steps, taken_of
from twin.engine.compiled.pricing import decode_bound, decode_seconds, piece_at


@compiled
def _instants(s: Any, number: int, at_s: Any) -> None:
    """Write when each step of a run is (decided, begun, done, seen) and what limits it."""
    policy, run = policies(s)[0], runs(s)[number]
    seqs, kv_tokens, last_kv, row = run.seqs, run.kv_tokens, -1, 0
    launch_s = policy.schedule_s + policy.schedule_per_seq_s * seqs
    update_s, old_update_s = policy.update_s + policy.update_per_seq_s * seqs, run.update_s
    now_s, free_s, flying_s = run.now_s, run.free_s, run.flying_s
    for step in range(run.steps):
        if kv_tokens > last_kv:
            row = piece_at(s, seqs, kv_tokens)
            last_kv = pieces(s)[row].last_kv
        launched_s = now_s + launch_s
        start_s = max(launched_s, free_s)
        end_s = start_s + decode_seconds(pieces(s)[row], kv_tokens)
        waited_s = flying_s if policy.asynchronous else end_s
        seen_s = max(launched_s, waited_s + policy.wake_s) + old_update_s
        at_s[step, 0], at_s[step, 1], at_s[step, 2], at_s[step, 3] = now_s, start_s, end_s, seen_s
        at_s[step, 4] = decode_bound(pieces(s)[row], kv_tokens)
        now_s, free_s, flying_s, old_update_s = seen_s, end_s, end_s, update_s
        kv_tokens += seqs


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
        _instants(s, number, at_s)
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
            _instants(s, number, at_s)
            for step in range(1, runs(s)[number].steps):
                between_s = at_s[step, 3] - at_s[step - 1, 3]
                for _ in range(runs(s)[number].seqs):
                    out[end] = between_s
                    end += 1
        ends[gap.replica] = end
