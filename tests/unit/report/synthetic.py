"""A small made-up run, consistent in itself: a toy batch loop, not a model of any engine."""

from dataclasses import dataclass, field

import numpy as np

from twin.engine.result import (
    BOUNDS,
    FINISHED,
    REJECTED,
    UNFINISHED,
    PrefixTotals,
    RequestTable,
    SimulationResult,
    StepTable,
)

BLOCK_SIZE = 16
KV_BLOCKS = 60
MAX_PROMPT = 600
STEP_COLUMNS = tuple(name for name in StepTable.__dataclass_fields__ if name != "busy_s")

INPUTS = {
    "schema_version": 1,
    "name": "toy",
    "llm": "meta-llama/Llama-3.1-8B-Instruct",
    "gpu": "h100_sxm",
    "engine": {"name": "vllm", "version": "0.33.0"},
    "parallelism": {"tp": 2, "pp": 1},
    "cluster": {"replicas": 2, "router": "round_robin"},
    "policy": {"max_num_seqs": 8, "max_model_len": 4096, "block_size": 16},
    "workload": {"kind": "trace", "path": "toy.csv"},
    "slo": {"ttft_s": 0.5, "tpot_s": 0.05, "percentile": 90},
    "seed": 7,
}


@dataclass
class _Job:
    index: int
    arrival_s: float
    prompt: int
    output: int
    replica: int
    done: int = 0
    computed: int = 0
    scheduled_s: float = np.nan
    first_s: float = np.nan
    last_s: float = np.nan
    preemptions: int = 0
    tokens_s: list[float] = field(default_factory=list)

    @property
    def blocks(self) -> int:
        return -(-self.computed // BLOCK_SIZE)

    @property
    def reserved(self) -> int:
        """Blocks once everything known and the next token is computed."""
        return -(-(self.prompt + self.done + 1) // BLOCK_SIZE)


def toy_result(
    num_requests: int = 40, *, replicas: int = 2, horizon_s: float = 1.8, **inputs: object
) -> SimulationResult:
    """A run of `replicas` toy engines with chunked prefill, preemption, rejection and a cut."""
    rng = np.random.default_rng(3)
    arrivals = np.cumsum(rng.exponential(0.05, num_requests))
    jobs = [
        _Job(i, float(arrivals[i]), int(rng.integers(20, 400)), int(rng.integers(1, 60)), -1)
        for i in range(num_requests)
    ]
    for job in jobs[5::11]:
        job.prompt = MAX_PROMPT + 1
    accepted = [job for job in jobs if job.prompt <= MAX_PROMPT]
    for turn, job in enumerate(accepted):
        job.replica = turn % replicas
    rows: list[tuple] = []
    for replica in range(replicas):
        mine = [job for job in accepted if job.replica == replica]
        rows += _serve(replica, mine, horizon_s)
    rows.sort(key=lambda row: (row[STEP_COLUMNS.index("scheduled_s")], row[0]))
    return SimulationResult(
        requests=_request_table(jobs),
        steps=_step_table(rows),
        itl_s=np.array([gap for job in jobs for gap in np.diff(job.tokens_s)], dtype=float),
        prefix=PrefixTotals(queries=4_000, hits=1_000, preempted_queries=50, preempted_hits=10),
        kv_blocks=KV_BLOCKS + 1,
        block_size=BLOCK_SIZE,
        replicas=replicas,
        simulated_s=horizon_s,
        inputs={**INPUTS, **inputs},
        notes=("Collectives are modelled, not measured, for this GPU.",),
        time_by_source_s={"interpolated": 3.0, "physics": 1.0},
    )


def _serve(replica: int, jobs: list[_Job], horizon_s: float) -> list[tuple]:
    rows, waiting, running, now = [], list(jobs), [], 0.0
    while (waiting or running) and now < horizon_s:
        if not running and waiting[0].arrival_s > now:
            now = waiting[0].arrival_s
        lost = 0
        while running and sum(j.reserved for j in running) > KV_BLOCKS:
            victim = running.pop()
            victim.computed, victim.preemptions, lost = 0, victim.preemptions + 1, lost + 1
            waiting.insert(0, victim)
        while not lost and waiting and waiting[0].arrival_s <= now and len(running) < 8:
            if sum(j.reserved for j in [*running, waiting[0]]) > KV_BLOCKS:
                break
            job = waiting.pop(0)
            if np.isnan(job.scheduled_s):
                job.scheduled_s = now
            running.append(job)
        prefill = decode = 0
        for job in running:
            need = job.prompt + job.done - job.computed
            chunk = min(need, 256)
            job.computed += chunk
            decode += chunk == 1
            prefill += chunk if chunk > 1 else 0
        queued = sum(j.arrival_s <= now for j in waiting)
        used = sum(j.blocks for j in running)
        bound = BOUNDS.index("compute" if prefill else "hbm" if decode > 2 else "launch")
        start, end = now + 0.001, now + 0.011 + 2e-5 * prefill
        rows.append(
            (replica, start, end, now, prefill, decode, len(running), queued, used, lost, bound)
        )
        now = end + 0.0005
        for job in [j for j in running if j.computed == j.prompt + j.done]:
            job.done += 1
            job.tokens_s.append(now)
            job.first_s = job.tokens_s[0]
            if job.done == job.output:
                job.last_s = now
                running.remove(job)
    return rows


def _request_table(jobs: list[_Job]) -> RequestTable:
    def outcome(job: _Job) -> int:
        if job.replica < 0:
            return REJECTED
        return UNFINISHED if np.isnan(job.last_s) else FINISHED

    floats = {
        "arrival_s": [j.arrival_s for j in jobs],
        "scheduled_s": [j.scheduled_s for j in jobs],
        "first_token_s": [j.first_s for j in jobs],
        "finish_s": [j.last_s for j in jobs],
    }
    ints = {
        "prompt_tokens": [j.prompt for j in jobs],
        "output_tokens": [j.done for j in jobs],
        "cached_tokens": [
            16 * (j.index % 3) if j.scheduled_s == j.scheduled_s else 0 for j in jobs
        ],
        "preemptions": [j.preemptions for j in jobs],
        "replica": [j.replica for j in jobs],
        "outcome": [outcome(j) for j in jobs],
        "session": [-1 for j in jobs],
        "turn": [0 for j in jobs],
        "priority": [0 for j in jobs],
    }
    return RequestTable(
        **{k: np.array(v, dtype=np.float64) for k, v in floats.items()},
        **{k: np.array(v, dtype=np.int64) for k, v in ints.items()},
        name=tuple(f"r-{j.index}" for j in jobs),
    )


def _step_table(rows: list[tuple]) -> StepTable:
    times = {"start_s", "end_s", "scheduled_s"}
    columns = list(zip(*rows, strict=True)) or [()] * len(STEP_COLUMNS)
    return StepTable(
        **{
            name: np.array(column, dtype=np.float64 if name in times else np.int64)
            for name, column in zip(STEP_COLUMNS, columns, strict=True)
        }
    )


def empty_result() -> SimulationResult:
    """A run to which no request came."""
    return SimulationResult(
        requests=_request_table([]),
        steps=_step_table([]),
        itl_s=np.empty(0),
        prefix=PrefixTotals(0, 0, 0, 0),
        kv_blocks=KV_BLOCKS + 1,
        block_size=BLOCK_SIZE,
        replicas=1,
        simulated_s=0.0,
        inputs={},
    )
