"""When each step of a run of decode steps is decided, begun, done and seen."""

from typing import Any

from twin.engine.compiled.jit import compiled
from twin.engine.compiled.memory import pieces, policies, runs
from twin.engine.compiled.pricing import decode_bound, decode_seconds, piece_at


@compiled
def next_instants(
    s: Any, number: int, row: int, kv_tokens: int, before: tuple[float, float, float, float]
) -> tuple[float, float, float]:
    """Return when a step of a run is (begun, done, seen).

    Args:
        s: where.
        number: of the run.
        row: of the line that its durations are on.
        kv_tokens: of the step.
        before: (instant of its call; end of the step before; end of the step that is waited for,
            seconds of processing that).
    """
    policy, seqs = policies(s)[0], runs(s)[number].seqs
    now_s, free_s, flying_s, update_s = before
    launched_s = now_s + (policy.schedule_s + policy.schedule_per_seq_s * seqs)
    start_s = max(launched_s, free_s)
    end_s = start_s + decode_seconds(pieces(s)[row], kv_tokens)
    waited_s = flying_s if policy.asynchronous else end_s
    return start_s, end_s, max(launched_s, waited_s + policy.wake_s) + update_s


@compiled
def write_instants(s: Any, number: int, at_s: Any) -> None:
    """Write of each step of a run (decided, begun, done, seen, what limits it)."""
    policy, run = policies(s)[0], runs(s)[number]
    kv_tokens, last_kv, row = run.kv_tokens, -1, 0
    update_s = policy.update_s + policy.update_per_seq_s * run.seqs
    before = (run.now_s, run.free_s, run.flying_s, run.update_s)
    for step in range(run.steps):
        if kv_tokens > last_kv:
            row = piece_at(s, run.seqs, kv_tokens)
            last_kv = pieces(s)[row].last_kv
        start_s, end_s, seen_s = next_instants(s, number, row, kv_tokens, before)
        at_s[step, 0], at_s[step, 1], at_s[step, 2] = before[0], start_s, end_s
        at_s[step, 3] = seen_s
        at_s[step, 4] = decode_bound(pieces(s)[row], kv_tokens)
        before = (seen_s, end_s, end_s, update_s)
        kv_tokens += run.seqs
