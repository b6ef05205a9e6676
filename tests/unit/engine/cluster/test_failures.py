"""Crashes and drains: what becomes of replicas and of the requests they had."""

import pytest

from tests.unit.engine.cluster.support import Run, asks
from twin.engine.result import FAILED, FINISHED, UNFINISHED


def scheduled(*rows, **more):
    keys = ("at_s", "replica", "kind", "down_s")
    return {"scheduled": [dict(zip(keys, row, strict=False)) for row in rows], **more}


def test_a_crash_sends_its_requests_to_the_others_to_begin_anew():
    run = Run(asks((0.0, 5), (0.0, 5)), 2, scheduled((2.5, 0, "crash")))
    table = run.table
    assert table.outcome.tolist() == [FINISHED, FINISHED]
    assert table.requeues.tolist() == [1, 0]
    assert table.replica.tolist() == [1, 1]
    # It joins the step that begins at 3 and has its first token with that.
    assert table.scheduled_s[0] == 3.0
    assert table.first_token_s[0] == 4.0
    assert table.finish_s.tolist() == [8.0, 5.0]
    assert table.output_tokens.tolist() == [5, 5]
    assert run.events == [(2.5, 0, "crashed")]
    assert run.paid_s == [2.5, 8.0]


def test_by_policy_its_requests_fail_and_the_workload_hears_of_it():
    def react(request, end_s, rejected):
        return asks((0.0, 1), (end_s, 2))[1:] if rejected else []

    run = Run(asks((0.0, 5)), 2, scheduled((2.5, 0, "crash"), in_flight="fail"), react=react)
    assert run.table.outcome.tolist() == [FAILED, FINISHED]
    assert run.table.output_tokens.tolist() == [2, 2]  # two tokens had got out
    assert run.table.finish_s.tolist() == [2.5, 4.5]
    assert run.source.ends == [(0, 2.5, True), (1, 4.5, False)]


def test_a_request_that_meets_too_many_crashes_fails():
    failures = scheduled((0.5, 0, "crash"), (1.0, 1, "crash"), max_requeues=1)
    run = Run(asks((0.0, 5)), 3, failures)
    assert run.table.outcome.tolist() == [FAILED]
    assert run.table.requeues.tolist() == [1]
    assert run.table.finish_s.tolist() == [1.0]


def test_with_nobody_there_requests_wait_in_order_and_go_first():
    failures = scheduled((0.0, 0, "crash", 4.0))
    specs = [(float(i), 1) for i in range(6)]
    run = Run(asks(*specs), 1, failures, startup_s=1.0, max_num_seqs=1)
    # Down for 4 s, starting for 1 s; then one a second, in order of arrival.
    assert run.table.scheduled_s.tolist() == [5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    assert run.events == [(0.0, 0, "crashed"), (4.0, 0, "starting"), (5.0, 0, "ready")]
    assert run.paid_s == [7.0]  # 4 to 11


def test_if_nobody_ever_comes_they_stay_unfinished():
    run = Run(asks((0.0, 5), (1.0, 5), (9.0, 5)), 2, scheduled((2.5, 0), (3.5, 1)))
    assert run.table.outcome.tolist() == [UNFINISHED] * 3
    assert run.table.replica.tolist() == [-1, -1, -1]
    assert run.clock.now == 9.0
    assert run.source.ends == []


def test_a_draining_replica_finishes_what_it_has_and_gets_nothing_new():
    failures = scheduled((2.5, 0, "drain", 3.0))
    run = Run(asks((0.0, 5), (0.0, 2), (3.0, 2), (9.0, 1)), 2, failures)
    assert run.table.replica.tolist() == [0, 1, 1, 0]
    assert run.table.finish_s.tolist() == [5.0, 2.0, 5.0, 10.0]
    assert run.events == [
        (2.5, 0, "draining"), (5.0, 0, "gone"), (8.0, 0, "starting"), (8.0, 0, "ready")
    ]  # fmt: skip
    assert run.table.requeues.sum() == 0


def test_an_idle_replica_is_gone_at_once():
    run = Run(asks((0.0, 1), (4.0, 1)), 2, scheduled((2.0, 1, "drain")))
    assert run.events == [(2.0, 1, "gone")]
    assert run.paid_s == [5.0, 2.0]


def test_a_crash_ends_draining_and_starting_ones_too():
    failures = scheduled(
        (1.5, 0, "drain"), (2.5, 0, "crash", 2.0), (5.0, 0, "crash"), (7.0, 0, "crash")
    )
    run = Run(asks((0.0, 5), (0.0, 9)), 2, failures, startup_s=3.0)
    assert run.events == [
        (1.5, 0, "draining"), (2.5, 0, "crashed"), (4.5, 0, "starting"), (5.0, 0, "crashed")
    ]  # fmt: skip
    assert run.table.outcome.tolist() == [FINISHED] * 2


def test_a_replica_comes_back_with_a_cold_cache():
    class Same:
        def block_keys(self, block_size, num_tokens):
            return list(range(num_tokens // block_size))

    def hits(failures):
        requests = asks((0.0, 1), (4.0, 1))
        requests = [type(r)(r.index, r.arrival_s, 40, 1, content=Same()) for r in requests]
        return Run(requests, 1, failures).table.cached_tokens.tolist()

    assert hits(None) == [0, 32]
    assert hits(scheduled((2.0, 0, "crash", 0.0))) == [0, 0]
    assert hits(scheduled((2.0, 0, "drain", 0.0))) == [0, 0]


def test_what_is_planned_for_later_does_not_prolong_the_run():
    run = Run(asks((0.0, 2)), 1, scheduled((100.0, 0, "crash")))
    assert run.clock.now == 2.0
    assert run.events == []


def test_a_closed_loop_goes_on_through_crashes():
    def react(request, end_s, rejected):
        at = request.index + 2
        return [type(request)(at, end_s, 8, 3)] if at < 40 else []

    failures = {"random": {"mtbf_s": 4.0, "mttr_s": 1.0}, "max_requeues": 50}
    run = Run(asks((0.0, 3), (0.0, 3)), 2, failures, startup_s=0.5, react=react)
    assert run.table.outcome.tolist() == [FINISHED] * len(run.table)
    assert run.table.requeues.sum() > 0
    assert sorted(index for index, *_ in run.source.ends) == list(range(len(run.table)))
    lives = [what for _, replica, what in run.events if not replica]
    assert lives[:6] == ["crashed", "starting", "ready"] * 2


def test_failures_of_one_replica_do_not_shift_those_of_another():
    def crashes(replicas):
        failures = {"random": {"mtbf_s": 5.0, "mttr_s": 1.0}, "max_requeues": 100}
        run = Run(asks((0.0, 100)), replicas, failures, horizon_s=30.0)
        return [at for at, replica, what in run.events if what == "crashed" and not replica]

    assert crashes(1) == crashes(4)
    assert len(crashes(1)) > 2


@pytest.mark.parametrize("kind", ["crash", "drain"])
def test_an_unknown_replica_is_left_alone(kind):
    assert Run(asks((0.0, 2)), 1, scheduled((1.0, 7, kind))).events == []
