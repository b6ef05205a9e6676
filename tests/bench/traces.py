"""CPU seconds of whole production traces on the reference engine, one core, simulation only.

Needs the measured data folder (SERVETWIN_DATA). Asserts that every request finished.
"""

import os
import time
from pathlib import Path

from twin.engine import simulate
from twin.load import load_scenario

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("SERVETWIN_DATA") or ROOT.parent / "shared" / "data")
AZURE = str(DATA / "traces" / "azure_2023_conv.csv")
MOONCAKE = str(DATA / "traces" / "mooncake_conversation.jsonl")
RUNS = {
    "Azure conversation, 4 replicas": {"workload.path": AZURE, "cluster.replicas": 4},
    "Azure conversation x 0.25, 1 replica": {
        "workload.path": AZURE,
        "workload.rate_scale": 0.25,
    },
    "Mooncake conversation, 8 replicas": {
        "workload.path": MOONCAKE,
        "cluster.replicas": 8,
        "policy.max_model_len": 131072,
    },
}


def main() -> None:
    """Run each trace once."""
    for name, overrides in RUNS.items():
        scenario = load_scenario("chat-h100", overrides)
        started = time.process_time()
        result = simulate(scenario)
        seconds = time.process_time() - started
        finished = int((result.requests.outcome == 0).sum())
        assert finished == len(result.requests), (name, finished, len(result.requests))
        print(
            f"{name:<38} {seconds:7.1f} CPU s  {finished:,} requests  {len(result.steps):,} steps"
        )


if __name__ == "__main__":
    main()
