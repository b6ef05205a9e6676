"""Studies as the app keeps them, small enough for tests."""

import os
import time

from app.answers.search.order import Order, Wanted
from app.answers.search.studies import OUT, Launch, new_study
from app.answers.setup import Setup

CHANGES = {"workload.num_requests": 60}
KNOBS = ("policy.max_num_seqs", "policy.max_num_batched_tokens")


def order(trials=8, changes=None, **wanted):
    """A search whose trials take some tens of milliseconds."""
    return Order(
        Setup("chat-h100", None, {**CHANGES, **(changes or {})}),
        Wanted(trials=trials, knobs=KNOBS, **wanted),
    )


def finished(asked=None, argv=("--seeds", "2")):
    """A study that was searched and judged in this process."""
    from twin.cli.app import app
    from twin.cli.running import run

    asked = asked or order(trials=4)
    study = new_study(asked)
    study._note(Launch(0, time.time(), asked.wanted.trials))
    back = os.getcwd()
    os.chdir(study.folder)
    try:
        run(app, [*asked.arguments(), *argv, "--quiet", "--out", OUT])
    finally:
        os.chdir(back)
    return study


def wait_for(check, seconds=60):
    """What `check` returns as soon as it is true."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = check()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("nothing came of it in time")
