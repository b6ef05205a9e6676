"""How many replicas there are, by a HorizontalPodAutoscaler's rule."""

import pytest

from tests.unit.engine.cluster.support import Run, asks
from twin.engine.result import FINISHED


def rule(**changes):
    values = {
        "target": 2.0, "min_replicas": 1, "max_replicas": 4, "interval_s": 10.0,
        "scale_down_stabilization_s": 0.0,
    }  # fmt: skip
    return {**values, **changes}


def what(run, *kinds):
    return [(at, replica) for at, replica, kind in run.events if kind in kinds]


def test_it_starts_as_many_as_the_metric_asks_for_and_engines_only_when_used():
    run = Run(asks(*[(0.0, 15)] * 5), 1, autoscaler=rule(), startup_s=1.0)
    # 5 requests at 2 a replica: 3 replicas.
    assert what(run, "starting") == [(10.0, 1), (10.0, 2)]
    assert what(run, "ready") == [(11.0, 1), (11.0, 2)]
    assert run.built == [0]
    assert run.clock.now == 15.0
    assert run.paid_s == [15.0, 5.0, 5.0]


@pytest.mark.parametrize(("requests", "replicas"), [(8, 4), (9, 4), (10, 5)])
def test_within_the_tolerance_nothing_changes(requests, replicas):
    """9 of 4 x 2.1 are 7 % too many, 10 are 19 %."""
    scaler = rule(target=2.1, max_replicas=9)
    run = Run(asks(*[(0.0, 12)] * requests), 4, autoscaler=scaler)
    assert len(what(run, "starting")) == replicas - 4


def test_limits_hold():
    run = Run(asks(*[(0.0, 25)] * 40), 1, autoscaler=rule(), max_num_seqs=64)
    assert len(what(run, "starting")) == 3
    late = Run(asks((0.0, 1), (90.0, 1)), 3, autoscaler=rule(min_replicas=2))
    assert what(late, "gone") == [(10.0, 2)]


def test_down_goes_the_newest_and_what_it_has_is_finished():
    specs = [(0.0, 15)] * 4 + [(11.0, 30)] * 2
    run = Run(asks(*specs), 1, autoscaler=rule())
    assert what(run, "starting") == [(10.0, 1)]
    # At 20 two requests are left: one replica is enough; the newer one has both.
    assert run.table.replica.tolist() == [0, 0, 0, 0, 1, 1]
    assert what(run, "draining") == [(20.0, 1)]
    assert run.table.outcome.tolist() == [FINISHED] * 6
    assert run.table.finish_s.max() == 41.0


def test_scaling_down_waits_for_the_window():
    specs = [(0.0, 15)] * 4 + [(60.0, 1)]
    gone = {
        window_s: what(
            Run(asks(*specs), 2, autoscaler=rule(scale_down_stabilization_s=window_s)),
            "gone",
        )
        for window_s in (0.0, 25.0)
    }
    assert gone[0.0] == [(20.0, 1)]
    # The recommendation of 10 s, two replicas, counts until 35 s have passed.
    assert gone[25.0] == [(40.0, 1)]


def test_scaling_up_waits_until_the_whole_window_agrees():
    specs = [(0.0, 35)] * 1 + [(15.0, 35)] * 3
    scaler = rule(scale_up_stabilization_s=12.0)
    # At 10 one replica was enough, at 20 two are needed, and at 30 still.
    assert what(Run(asks(*specs), 1, autoscaler=scaler), "starting") == [(30.0, 1)]


def test_to_zero_and_back():
    run = Run(asks((0.0, 3), (47.0, 3), (48.0, 3)), 1, autoscaler=rule(min_replicas=0), startup_s=2)
    assert run.events[:3] == [(10.0, 0, "gone"), (47.0, 0, "starting"), (49.0, 0, "ready")]
    assert run.table.scheduled_s.tolist() == [0.0, 49.0, 49.0]
    assert run.table.outcome.tolist() == [FINISHED] * 3
    assert run.paid_s == [10.0 + 5.0]


def test_from_nothing_at_the_start():
    run = Run(asks((5.0, 1)), 0, autoscaler=rule(min_replicas=0), startup_s=2.0)
    assert run.table.finish_s.tolist() == [8.0]
    assert run.built == [0]


def test_it_replaces_a_replica_that_died_for_good():
    failures = {"scheduled": [{"at_s": 1.5, "replica": 0}]}
    run = Run(asks((0.0, 3), (30.0, 1)), 1, failures, rule(), startup_s=1.0)
    assert run.events[:3] == [(1.5, 0, "crashed"), (1.5, 0, "starting"), (2.5, 0, "ready")]
    assert run.table.outcome.tolist() == [FINISHED] * 2


def test_waiting_requests_and_kv_usage_are_metrics_too():
    waiting = rule(metric="waiting", target=3.0)
    run = Run(asks(*[(0.0, 25)] * 8), 1, autoscaler=waiting, max_num_seqs=2)
    assert len(what(run, "starting")) == 1  # six wait
    # Two requests of 8 + 9 tokens hold 2 blocks each of 8.
    usage = rule(metric="kv_usage", target=0.25)
    run = Run(asks(*[(0.0, 25)] * 2), 1, autoscaler=usage, num_gpu_blocks=9, max_model_len=64)
    assert len(what(run, "starting")) == 1


def test_ticks_do_not_prolong_the_run():
    assert Run(asks((0.0, 2)), 1, autoscaler=rule()).clock.now == 2.0


@pytest.mark.parametrize("metric", ["in_flight", "waiting", "kv_usage"])
@pytest.mark.parametrize("kind", ["crash", "drain"])
def test_another_starts_when_the_one_that_requests_wait_for_does_not_come(metric, kind):
    scaler = rule(metric=metric, target=1.0, min_replicas=0, interval_s=0.4)
    failures = {"scheduled": [{"at_s": 6.0, "replica": 0, "kind": kind}]}
    run = Run(asks((5.0, 2)), 0, failures, scaler, startup_s=3.0)
    assert run.table.outcome.tolist() == [FINISHED]
    assert run.table.scheduled_s.tolist() == [9.0]
