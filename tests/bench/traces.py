"""CPU seconds of whole production traces: the reference engine and the fast one, in one process.

Simulation only, reading the trace left out, and loading compiled code once before. Needs the
measured data folder (SERVETWIN_DATA). It asserts that both engines finish every request in the same
number of steps, and appends what was measured to benchmarks/history.csv. `--fast` leaves the
reference out. Each run is made three times and the quickest counts (the reference runs once).
"""

import os
import sys
import time
from pathlib import Path

from tests.bench.history import append
from twin.engine import simulate
from twin.load import load_scenario

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SERVETWIN_DATA") or ROOT.parent / "shared" / "data")
AZURE = {"workload.path": str(DATA / "traces" / "azure_2023_conv.csv")}
MOONCAKE = {
    "workload.path": str(DATA / "traces" / "mooncake_conversation.jsonl"),
    "policy.max_model_len": 131072,
}
# As Vidur's own studies: Llama-2-7B on one A100, Poisson arrivals, lengths of the Azure trace (its
# prompts beyond the network's 4,096 tokens are rejected).
VIDUR = {
    "llm": "llama-2-7b",
    "gpu": "a100_sxm",
    "workload": {
        "kind": "synthetic",
        "arrivals": {"kind": "poisson", "rate": 2.0},
        "num_requests": 50_000,
        "prompt_tokens": {"kind": "empirical", "path": AZURE["workload.path"]},
        "output_tokens": {"kind": "empirical", "path": AZURE["workload.path"]},
    },
}
RUNS = {
    "Azure conversation x 0.25, 1 replica": {**AZURE, "workload.rate_scale": 0.25},
    "Azure conversation, 2 replicas": {**AZURE, "cluster.replicas": 2},
    "Azure conversation, 4 replicas": {**AZURE, "cluster.replicas": 4},
    "Azure conversation, 16 replicas": {**AZURE, "cluster.replicas": 16},
    "Azure conversation, 4 replicas, least loaded": {
        **AZURE, "cluster.replicas": 4, "cluster.router": "least_requests",
    },
    "Azure conversation, 16 replicas, least loaded": {
        **AZURE, "cluster.replicas": 16, "cluster.router": "least_requests",
    },
    "Mooncake conversation, 8 replicas": {**MOONCAKE, "cluster.replicas": 8},
    "Vidur's kind of run": VIDUR,
}  # fmt: skip
COMPARED = (
    "Azure conversation x 0.25, 1 replica",
    "Azure conversation, 4 replicas",
    "Mooncake conversation, 8 replicas",
)
"""Those that the reference engine runs as well."""


def measure(name, engine, times):
    """Run a trace on an engine; return (requests, steps, CPU seconds of the quickest time)."""
    scenario = load_scenario("chat-h100", RUNS[name])
    taken = []
    for _ in range(times):
        started = time.process_time()
        result = simulate(scenario, engine=engine)
        taken.append(time.process_time() - started)
    finished, rejected = ((result.requests.outcome == code).sum() for code in (0, 1))
    assert finished + rejected == len(result.requests), (name, engine, finished, rejected)
    return int(finished), result.steps_taken, min(taken)


def main() -> None:
    """Run each trace."""
    simulate(load_scenario("chat-h100", {"workload.num_requests": 50}), engine="compiled")
    rows = []
    for name in RUNS:
        fast = measure(name, "compiled", 3)
        rows.append((name, "fast", *fast[:2], round(fast[2], 2), ""))
        print(
            f"{name:<48} fast       {fast[2]:7.2f} CPU s  {fast[0]:,} requests  {fast[1]:,} steps"
        )
        if name not in COMPARED or "--fast" in sys.argv[1:]:
            continue
        plain = measure(name, "reference", 1)
        assert plain[:2] == fast[:2], name
        rows.append((name, "reference", *plain[:2], round(plain[2], 2), ""))
        print(f"{'':<48} reference  {plain[2]:7.2f} CPU s: {plain[2] / fast[2]:.0f} times as long")
    append(rows)


if __name__ == "__main__":
    main()
