"""`python -m twin.engine.compiled`: compile the engine now, not in the first run that needs it."""

from twin.engine import simulate
from twin.load import load_scenario


def main() -> None:
    """Run what makes numba compile every function."""
    for recording in ("full", "sampled"):
        changes = {"workload.num_requests": 50, "recording": recording}
        simulate(load_scenario("chat-h100", changes), engine="compiled").steps.start_s.sum()


if __name__ == "__main__":
    main()
