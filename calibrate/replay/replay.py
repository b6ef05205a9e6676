"""From a recorded run to a scenario, and from its simulation to errors."""

from dataclasses import dataclass, replace

import numpy as np

from calibrate.replay.run_folder import Floats, Latencies, RunFolder, latencies, whole
from calibrate.sources.layer_profile import network_of
from twin.engine.layers import LAYER_HOST
from twin.engine.result import FINISHED, SimulationResult
from twin.engine.run import simulate
from twin.errors import InputError
from twin.load.resolve import resolve_scenario
from twin.load.validation import validate
from twin.scenario import Scenario, ScenarioFile

METRICS = ("ttft", "tpot", "e2e")
STATISTICS = ("mean", "p50", "p90", "p95", "p99")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One simulation of a run.

    Attributes:
        blocks: KV blocks a rank it ran with.
        predicted: what the requests took in the simulation.
        preemptions: in the simulation.
    """

    blocks: int
    predicted: Latencies
    preemptions: int


@dataclass(frozen=True, slots=True)
class Replay:
    """A run and its simulations.

    Attributes:
        run: what was recorded.
        logged: with the block count that the engine logged; None: it logged none.
        computed: with the count of the capacity model.
    """

    run: RunFolder
    logged: Outcome | None
    computed: Outcome

    @property
    def main(self) -> Outcome:
        """The one to judge by."""
        return self.logged or self.computed


def replay(run: RunFolder) -> Replay:
    """Simulate a run with the logged block count, if any, and with the computed one.

    Raises:
        InputError: the run's flags or trace cannot be simulated.
    """
    scenario = scenario_of(run)
    logged = None
    if run.logged_blocks is not None:
        logged = outcome(run, with_blocks(run, scenario, run.logged_blocks))
    same = logged is not None and logged.blocks == scenario.num_gpu_blocks
    return Replay(run, logged, logged if logged and same else outcome(run, scenario))


def with_blocks(run: RunFolder, scenario: Scenario, blocks: int) -> Scenario:
    """Return a run's scenario with the block count that its engine logged.

    Raises:
        InputError: one request of the longest context does not fit: vLLM would not have started.
    """
    policy = scenario.policy
    needed = -(-policy.max_model_len // policy.block_size)
    # One block is the engine's null block.
    if needed > blocks - 1:
        raise InputError(
            f"num_gpu_blocks is {blocks}, but one request of max_model_len "
            f"{policy.max_model_len} needs {needed + 1}",
            where=str(run.path / "meta.json"),
            remedy="give the count that the engine logged",
        )
    return replace(scenario, num_gpu_blocks=blocks)


def scenario_of(run: RunFolder) -> Scenario:
    """Return the run as a scenario with the computed block count.

    Raises:
        InputError: its flags cannot be simulated, or trace and record hold different requests.
    """
    flags, kv, meta = run.flags, run.kv_cache, run.path / "meta.json"
    tp, pp, dp = (
        whole(flags, f"{kind}_parallel_size", meta, 1) for kind in ("tensor", "pipeline", "data")
    )
    model = str(flags.get("model") or run.profile.facts["model"])
    data = {
        "schema_version": 1,
        "name": run.path.name,
        "llm": network_of(model, str(meta)),
        "gpu": run.profile.gpu,
        "engine": {"name": "vllm", "version": run.vllm_version},
        "parallelism": {
            "tp": tp,
            "pp": pp,
            "dp": dp,
            "ep": tp * dp if flags.get("enable_expert_parallel") else 1,
        },
        "policy": {
            "max_num_seqs": flags.get("max_num_seqs"),
            "max_num_batched_tokens": flags.get("max_num_batched_tokens"),
            "max_model_len": flags.get("max_model_len"),
            "block_size": whole(kv, "block_size", meta, 16),
            "gpu_memory_utilization": kv.get("gpu_memory_utilization"),
            "kv_cache_dtype": flags.get("kv_cache_dtype") or "auto",
            "enable_prefix_caching": kv.get("enable_prefix_caching", True) is not False,
            "enforce_eager": bool(flags.get("enforce_eager", False)),
        },
        "workload": {"kind": "trace", "path": "trace.jsonl", "finish": "length"},
    }
    scenario = resolve_scenario(validate(ScenarioFile, data, str(meta)), run.path, where=str(meta))
    (trace,) = scenario.workload.traces.values()
    run.check_sent(trace.output_tokens)
    return replace(scenario, layer_profile=run.profile)


def outcome(run: RunFolder, scenario: Scenario) -> Outcome:
    """Simulate one scenario of a run.

    Raises:
        InputError: a request was refused.
    """
    result = simulate(scenario)
    requests = result.requests
    if (requests.outcome != FINISHED).any():
        raise InputError(
            "a request does not fit the engine's context",
            where=str(run.path),
            remedy="check max_model_len in meta.json",
        )
    predicted = latencies(
        queued_s(result), requests.first_token_s, requests.finish_s, requests.output_tokens
    )
    return Outcome(scenario.num_gpu_blocks, predicted, int(requests.preemptions.sum()))


def queued_s(result: SimulationResult) -> Floats:
    """Return when the engine core took each request, shape (n,).

    vLLM stamps `queued_ts` when its loop empties the inbox: at the first schedule call from the
    arrival on, not at the arrival.
    """
    requests, steps = result.requests, result.steps
    arrived = requests.arrival_s + LAYER_HOST.api_s
    queued = arrived.copy()
    for core in np.unique(steps.replica):
        calls = steps.scheduled_s[steps.replica == core]
        mine = np.flatnonzero(requests.replica == core)
        # The clock adds the same terms in the same order: equal instants are equal.
        next_call = np.searchsorted(calls, arrived[mine], side="left")
        found = calls[np.minimum(next_call, calls.size - 1)]
        queued[mine] = np.maximum(arrived[mine], found)
    return np.minimum(queued, requests.scheduled_s)


def statistics(values: Floats) -> dict[str, float]:
    """Return mean and percentiles."""
    points = np.percentile(values, [50, 90, 95, 99]).tolist()
    return dict(zip(STATISTICS, [float(values.mean()), *points], strict=True))


def error_pct(predicted: Latencies, measured: Latencies) -> dict[str, dict[str, float]]:
    """Return the signed error of each statistic of each metric, per cent."""
    errors = {}
    for metric in METRICS:
        ours, theirs = statistics(getattr(predicted, metric)), statistics(getattr(measured, metric))
        errors[metric] = {name: 100 * (ours[name] / theirs[name] - 1) for name in STATISTICS}
    return errors


def request_error_pct(predicted: Latencies, measured: Latencies) -> dict[str, float]:
    """Return the mean absolute error of single requests, per cent."""
    errors = {}
    for metric in METRICS:
        ours, theirs = getattr(predicted, metric), getattr(measured, metric)
        known = theirs > 0
        errors[metric] = float(100 * np.mean(np.abs(ours[known] / theirs[known] - 1)))
    return errors
