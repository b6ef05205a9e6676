"""The cluster in a summary: how long replicas were there, what happened to them, pool by pool."""

from typing import Any

import numpy as np

from twin.engine.result import (
    CLUSTER_EVENTS,
    CRASHED,
    FINISHED,
    GONE,
    STARTING,
    ReplicaTable,
    SimulationResult,
)
from twin.report.occupancy import Span

Life = tuple[int, float, float]
"""(number of a replica, from, to), seconds."""


def lives(result: SimulationResult) -> list[Life]:
    """Return when each replica was there, starts included; empty where replicas are not known."""
    if result.fleet is None:
        return []
    events = result.events
    since: dict[int, float] = dict.fromkeys(range(len(result.fleet)), 0.0)
    first = dict(zip(events.replica[::-1].tolist(), events.what[::-1].tolist(), strict=True))
    for replica, what in first.items():
        if what == STARTING:  # it was not there at the start
            del since[replica]
    found: list[Life] = []
    rows = zip(events.time_s.tolist(), events.replica.tolist(), events.what.tolist(), strict=True)
    for time_s, replica, what in rows:
        if what == STARTING:
            since[replica] = time_s
        elif what in (GONE, CRASHED):
            found.append((replica, since.pop(replica), time_s))
    return found + [(replica, start_s, result.simulated_s) for replica, start_s in since.items()]


def core_seconds(result: SimulationResult, span: Span) -> float:
    """Return the engine-core seconds within a span: what means over time and replicas divide by."""
    if result.fleet is None or not len(result.events):
        return span.seconds * result.replicas
    cores = result.fleet.cores.tolist()
    return float(
        sum(
            cores[replica] * max(0.0, min(end_s, span.end_s) - max(start_s, span.start_s))
            for replica, start_s, end_s in lives(result)
        )
    )


def cluster_figures(result: SimulationResult) -> dict[str, Any] | None:
    """Return pools and events as plain data; None: one pool to which nothing happened."""
    if result.fleet is None or not (len(result.events) or len(result.pools) > 1):
        return None
    events, what = result.events, np.bincount(result.events.what, minlength=len(CLUSTER_EVENTS))
    return {
        "crashes": int(what[CRASHED]),
        "starts": int(what[STARTING]),
        "pools": [_pool_figures(result, result.fleet, index) for index in range(len(result.pools))],
        "events": [
            {"time_s": time_s, "replica": replica, "what": CLUSTER_EVENTS[code]}
            for time_s, replica, code in zip(
                events.time_s.tolist(), events.replica.tolist(), events.what.tolist(), strict=True
            )
        ],
    }


def _pool_figures(result: SimulationResult, fleet: ReplicaTable, index: int) -> dict[str, Any]:
    pool, requests = result.pools[index], result.requests
    mine = fleet.pool == index
    served = requests.replica >= 0
    here = np.zeros(len(requests), dtype=bool)
    here[served] = result.pool_of_core[requests.replica[served]] == index
    paid_s = fleet.paid_s[mine]
    return {
        "name": pool.name,
        "gpu": pool.gpu,
        "replicas": int(mine.sum()),
        "gpus_per_replica": int(fleet.gpus[mine][0]) if mine.any() else 0,
        "kv_blocks": int(pool.kv_blocks),
        "block_size": int(pool.block_size),
        "replica_s": float(paid_s.sum()),
        "gpu_s": float(paid_s @ fleet.gpus[mine]),
        "requests": int(here.sum()),
        "finished": int((here & (requests.outcome == FINISHED)).sum()),
    }
