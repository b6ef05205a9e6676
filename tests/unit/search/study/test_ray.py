"""Trials on a Ray cluster; skips where Ray is not installed."""

import os
import signal
import threading
from pathlib import Path

import pytest

from tests.search_runs import small_problem
from tests.studies import told
from twin.errors import InputError
from twin.search.study.coordinator import run_study
from twin.search.study.options import StudyOptions

ray = pytest.importorskip("ray", reason="ray is not installed: pip install ray")


@pytest.fixture(scope="module")
def address():
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "include_dashboard": False, "object_store_memory": 10**8},
    )
    yield cluster.address
    cluster.shutdown()


def evaluators():
    """Process numbers of the evaluators that Ray runs."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"ray::RemoteEvaluator" in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def test_a_killed_evaluator_is_replaced_and_each_trial_counts_once(address, tmp_path):
    problem, killed = small_problem(), []

    def kill_one(progress):
        if progress.done in (4, 8) and len(killed) < 2:
            killed.append(evaluators()[0])
            os.kill(killed[-1], signal.SIGKILL)

    options = StudyOptions(out=tmp_path, trials=20, sampler="random", halving=False, ray=address)
    result = run_study(problem, options, kill_one)
    assert [trial.number for trial in result.trials] == list(range(20))
    assert {trial.state for trial in result.trials} <= {"complete", "infeasible"}
    # What candidates give does not depend on where they were evaluated.
    here = run_study(problem, StudyOptions(tmp_path / "here", 20, "random", halving=False))
    for far, near in zip(told(result), told(here), strict=True):
        assert far == near
    assert threading.active_count() < 20


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "no.such.host.invalid:9"])
def test_no_cluster_at_an_address_is_one_line(tmp_path, address):
    options = StudyOptions(out=tmp_path, trials=6, ray=address)
    with pytest.raises(InputError, match="no Ray cluster can be reached") as refused:
        run_study(small_problem(), options)
    assert "\n" not in str(refused.value)
