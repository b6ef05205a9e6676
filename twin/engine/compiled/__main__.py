"""`python -m twin.engine.compiled`: compile the engine now, not in the first run that needs it."""

import sys

from twin.engine import simulate
from twin.engine.compiled.jit import is_installed
from twin.load import load_scenario


def main() -> None:
    """Run what makes numba compile every function."""
    if not is_installed():
        sys.exit("error: numba is not installed; pip install numba")
    for recording in ("full", "sampled"):
        changes = {"workload.num_requests": 50, "recording": recording}
        simulate(load_scenario("chat-h100", changes), engine="compiled").steps.start_s.sum()


if __name__ == "__main__":
    main()
