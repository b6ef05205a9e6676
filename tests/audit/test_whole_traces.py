"""Production traces replayed whole through the command: all served, and twice the same bytes."""

import json
import os
import re
import subprocess

import pytest

from tests.audit.records import ROOT, TWIN
from tests.audit.whole_traces import SCENARIO, TRACE_RUNS, lengths

pytestmark = [pytest.mark.audit, pytest.mark.data]

TIMEOUT_S = 1800


def simulated(overrides, target, hash_seed):
    """Return the JSON text of a run of the command, its wall time taken out."""
    command = [TWIN, "simulate", SCENARIO, "--quiet", "--json", str(target)]
    for key, value in overrides.items():
        command += ["--set", f"{key}={value}"]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr
    text, found = re.subn(r'^  "wall_s": .*\n', "", target.read_text(), flags=re.MULTILINE)
    assert found == 1
    return text


@pytest.mark.parametrize("name", TRACE_RUNS)
def test_a_whole_trace_is_served_and_runs_twice_the_same(name, data_dir, tmp_path):
    run = TRACE_RUNS[name]
    overrides = run.overrides(data_dir)
    first = simulated(overrides, tmp_path / "first.json", hash_seed=1)
    figures = json.loads(first)

    # Nothing is lost: a row is served, or turned away because no context of this network holds it.
    rows = lengths(data_dir / "traces" / run.file)
    fitting = sum(prompt + answer <= run.longest_context for prompt, answer in rows)
    assert figures["requests"] == len(rows)
    assert figures["finished"] == fitting
    assert figures["rejected"] == len(rows) - fitting
    assert figures["unfinished"] == 0

    assert simulated(overrides, tmp_path / "second.json", hash_seed=2) == first
