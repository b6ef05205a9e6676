"""The steps and gaps of a run of decode steps of which only some are kept, or none."""

from typing import Any

from twin.engine.compiled.instants import next_instants
from twin.engine.compiled.jit import compiled
from twin.engine.compiled.layout import GAPS, STEPS
from twin.engine.compiled.memory import (
    counters,
    gaps,
    pieces,
    policies,
    replicas,
    runs,
    steps,
    taken_of,
)
from twin.engine.compiled.pricing import decode_bound, piece_at


@compiled
def _used_blocks(s: Any, number: int, count: int) -> int:
    """Return the KV blocks in use after so many steps of a run."""
    run, size = runs(s)[number], policies(s)[0].block_size
    length = min(run.steps, size)
    rounds, rest = count // size, count % size
    used = run.used_blocks
    for place in range(length):
        taken = taken_of(s)[run.taken_at + place]
        used += taken * (rounds + (1 if place < rest else 0))
    return used


@compiled
def _keep_step(
    s: Any, number: int, step: int, bound: int, at_s: tuple[float, float, float]
) -> None:
    run, row = runs(s)[number], steps(s)[counters(s)[STEPS]]
    row.scheduled_s, row.start_s, row.end_s = at_s
    row.replica, row.prefill, row.decode = run.replica, 0, run.seqs
    row.running, row.waiting = run.seqs, run.waiting
    row.used_blocks, row.preempted, row.bound = _used_blocks(s, number, step + 1), 0, bound
    counters(s)[STEPS] += 1


@compiled
def _keep_gaps(s: Any, number: int, gap_s: float) -> None:
    """Count the gaps of a step, one a sequence; keep those whose turn it is."""
    run, stride = runs(s)[number], policies(s)[0].stride
    replica = replicas(s)[run.replica]
    kept = (replica.gaps + run.seqs + stride - 1) // stride - (replica.gaps + stride - 1) // stride
    replica.gaps += run.seqs
    if kept:
        gap = gaps(s)[counters(s)[GAPS]]
        gap.gap_s, gap.times, gap.replica = gap_s, kept, run.replica
        counters(s)[GAPS] += 1


@compiled
def sample(s: Any, number: int) -> None:
    """Keep what is kept of a run whose first tokens' gaps are noted already."""
    policy, run = policies(s)[0], runs(s)[number]
    replica, stride = replicas(s)[run.replica], policy.stride
    if stride == 0:
        replica.steps += run.steps
        return
    kv_tokens, last_kv, row = run.kv_tokens, -1, 0
    update_s = policy.update_s + policy.update_per_seq_s * run.seqs
    before = (run.now_s, run.free_s, run.flying_s, run.update_s)
    for step in range(run.steps):
        if kv_tokens > last_kv:
            row = piece_at(s, run.seqs, kv_tokens)
            last_kv = pieces(s)[row].last_kv
        start_s, end_s, seen_s = next_instants(s, number, row, kv_tokens, before)
        if replica.steps % stride == 0:
            bound = decode_bound(pieces(s)[row], kv_tokens)
            _keep_step(s, number, step, bound, (before[0], start_s, end_s))
        replica.steps += 1
        if step:
            _keep_gaps(s, number, seen_s - before[0])
        before = (seen_s, end_s, end_s, update_s)
        kv_tokens += run.seqs
