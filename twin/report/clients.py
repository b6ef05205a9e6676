"""What clients who lose patience made of a run: attempts, retries, work for nobody."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from twin.engine.result import (
    FAILED,
    FINISHED,
    REJECTED,
    TIMED_OUT,
    UNFINISHED,
    Floats,
    Ints,
    RequestTable,
    SimulationResult,
)
from twin.report.latencies import Bools, measured, percentiles
from twin.report.numbers import count, percent, seconds, significant

_CAUSES = {"timed_out": TIMED_OUT, "failed": FAILED, "rejected": REJECTED}


def client_figures(result: SimulationResult) -> dict[str, Any] | None:
    """Return the figures of a run with `clients`, JSON-ready; None: it had none.

    A request is what a client wants, an attempt a row of the request table. Work is wasted if no
    client got the answer that it was for; requests not over at the end of the run are left out.
    """
    requests = result.requests
    if result.inputs.get("clients") is None:
        return None
    first = requests.attempt == 1
    asked = int(first.sum())
    done = requests.outcome == FINISHED
    e2e_s = requests.finish_s - requests.arrival_s[requests.origin]
    open_ = np.unique(requests.origin[requests.outcome == UNFINISHED]).size
    return {
        "requests": asked,
        "succeeded": int(done.sum()),
        "gave_up": asked - int(done.sum()) - open_,
        "attempts": len(requests),
        "attempts_per_request": len(requests) / asked if asked else None,
        "timed_out": int((requests.outcome == TIMED_OUT).sum()),
        "retries": _retries(requests),
        "e2e_s": percentiles(e2e_s[done & measured(result)]),
        **_waste(result),
    }


def _retries(requests: RequestTable) -> dict[str, int]:
    """Return how many attempts followed one that ended so."""
    order = np.lexsort((requests.attempt, requests.origin))
    before = order[:-1][requests.attempt[order[1:]] > 1]
    outcomes = np.bincount(requests.outcome[before], minlength=TIMED_OUT + 1)
    return {name: int(outcomes[code]) for name, code in _CAUSES.items()}


def _waste(result: SimulationResult) -> dict[str, Any]:
    requests = result.requests
    rows = np.arange(len(requests))
    # The rows whose work somebody got; who shared another's answer did no work of its own.
    useful = np.zeros(len(requests), dtype=bool)
    useful[requests.served_by[requests.outcome == FINISHED]] = True
    own = requests.served_by == rows
    wasted = own & ~useful & (requests.outcome != UNFINISHED)
    prompts = np.where(
        np.isnan(requests.first_token_s), 0, requests.prompt_tokens - requests.cached_tokens
    )
    computed = prompts + requests.output_tokens
    gpu_s = gpu_seconds(result)
    return {
        "wasted_prompt_tokens": int(prompts[wasted].sum()),
        "wasted_output_tokens": int(requests.output_tokens[wasted].sum()),
        "wasted_token_share": _share(computed, wasted, own),
        "wasted_gpu_share": _share(gpu_s, wasted, own),
    }


def _share(values: Floats | Ints, part: Bools, whole: Bools) -> float:
    total = float(values[whole].sum())
    return float(values[part].sum()) / total if total > 0 else 0.0


def gpu_seconds(result: SimulationResult) -> Floats:
    """Return the GPU time of each attempt: that of every step, divided equally among its requests.

    A step counts for those who had been scheduled by then and had not left.
    """
    requests, steps = result.requests, result.steps
    shares = steps.busy_s / np.maximum(steps.running, 1)
    until_s = np.where(np.isnan(requests.left_s), result.simulated_s, requests.left_s)
    found = np.zeros(len(requests))
    for replica in range(result.replicas):
        there = steps.replica == replica
        scheduled_s = steps.scheduled_s[there]
        sums = np.concatenate(([0.0], np.cumsum(shares[there])))
        mine = (requests.replica == replica) & ~np.isnan(requests.scheduled_s)
        begin = np.searchsorted(scheduled_s, requests.scheduled_s[mine])
        end = np.searchsorted(scheduled_s, until_s[mine])
        found[mine] = sums[np.maximum(begin, end)] - sums[begin]
    return found


def client_rows(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (what, figures) lines for reports; none where the run had no such clients."""
    clients = summary.get("clients")
    if not clients:
        return []
    causes = [f"{count(n)} {name.replace('_', ' ')}" for name, n in clients["retries"].items() if n]
    each = clients["attempts_per_request"]
    e2e_s = clients["e2e_s"]
    tokens = clients["wasted_prompt_tokens"] + clients["wasted_output_tokens"]
    return [
        (
            "Clients",
            f"{count(clients['succeeded'])} of {count(clients['requests'])} requests succeeded at "
            f"last, {count(clients['gave_up'])} gave up; "
            f"{'no' if each is None else significant(each)} attempts a request",
        ),
        ("Retries", f"after {', '.join(causes)}" if causes else "none"),
        ("E2E, all attempts", f"P50 {seconds(e2e_s['p50'])}, P99 {seconds(e2e_s['p99'])}"),
        (
            "Wasted",
            f"at least {significant(tokens)} tokens ({percent(clients['wasted_token_share'])}), "
            f"{percent(clients['wasted_gpu_share'])} of GPU time",
        ),
    ]
