"""Whatever happens to replicas: no request is lost, and none ends twice."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.effort import examples
from tests.unit.engine.cluster.support import Run
from twin.engine.result import FAILED, FINISHED, UNFINISHED
from twin.request import Request

# Half seconds: some things happen at the very instant of a step's end or of an arrival.
instants = st.integers(0, 60).map(lambda halves: halves / 2)
scheduled = st.fixed_dictionaries(
    {
        "at_s": instants,
        "replica": st.integers(0, 3),
        "kind": st.sampled_from(["crash", "drain"]),
        "down_s": st.sampled_from([None, 0.0, 0.7, 5.0]),
    }
)
failures = st.fixed_dictionaries(
    {
        "scheduled": st.lists(scheduled, max_size=8),
        "in_flight": st.sampled_from(["requeue", "fail"]),
        "max_requeues": st.sampled_from([0, 1, 10]),
        "random": st.none() | st.just({"mtbf_s": 6.0, "mttr_s": 2.0}),
    }
)
autoscalers = st.none() | st.fixed_dictionaries(
    {
        "metric": st.sampled_from(["in_flight", "waiting", "kv_usage"]),
        "target": st.sampled_from([0.1, 0.6, 1.0]),
        "min_replicas": st.integers(0, 1),
        "max_replicas": st.integers(3, 4),
        "interval_s": st.sampled_from([0.5, 3.0]),
        "scale_down_stabilization_s": st.sampled_from([0.0, 4.0]),
    }
)
asks = st.lists(st.tuples(instants, st.integers(1, 12)), min_size=1, max_size=12)
policies = st.fixed_dictionaries(
    {
        "max_num_seqs": st.sampled_from([1, 8]),
        "num_gpu_blocks": st.sampled_from([6, 257]),
        "max_model_len": st.just(64),
        "async_scheduling": st.booleans(),
        "startup_s": st.sampled_from([0.0, 1.3]),
    }
)
LEGAL = {
    "starting": {"ready", "crashed", "gone"},
    "ready": {"draining", "gone", "crashed"},
    "draining": {"gone", "crashed"},
    "gone": {"starting"},
    "crashed": {"starting"},
}


def check_lives(run, replicas):
    """Each replica goes from one state to the next only where there is a way."""
    for member in run.engine.membership.members:
        mine = [(at, what) for at, replica, what in run.events if replica == member.index]
        start = [(0.0, "ready")] if member.index < replicas else [(0.0, "gone")]
        for (before_s, before), (after_s, after) in pairwise(start + mine):
            assert after in LEGAL[before]
            assert before_s <= after_s
        assert member.paid_s <= run.clock.now


@settings(max_examples=examples(200), deadline=None)
@given(asks, st.integers(1, 3), failures, autoscalers, policies, st.booleans())
def test_no_request_is_lost_or_ends_twice(specs, replicas, failures, scaler, policy, follow):
    requests = [Request(i, at, 8, answer) for i, (at, answer) in enumerate(sorted(specs))]

    made = len(requests)

    def react(request, end_s, rejected):
        nonlocal made
        if not follow or made >= len(requests) + 6:
            return []
        made += 1
        return [Request(made - 1, end_s, 8, 3)]

    run = Run(requests, replicas, failures, scaler, react=react, **policy)
    table = run.table
    ended = np.isin(table.outcome, (FINISHED, FAILED))
    assert sorted(index for index, *_ in run.source.ends) == np.flatnonzero(ended).tolist()

    done = table.outcome == FINISHED
    wanted = np.array([r.max_tokens for r in run.engine.requests.requests])
    assert table.output_tokens[done].tolist() == wanted[done].tolist()
    assert (table.output_tokens <= wanted).all()
    for before, after in pairwise(
        [table.arrival_s, table.scheduled_s, table.first_token_s, table.finish_s]
    ):
        assert (before[done] <= after[done]).all()

    lost = table.outcome == FAILED
    if failures["in_flight"] == "requeue":
        assert (table.requeues[lost] == failures["max_requeues"]).all()
    else:
        assert table.requeues.sum() == 0

    # What is left over waits for a replica that cannot come.
    left = np.flatnonzero(table.outcome == UNFINISHED).tolist()
    assert sorted(request.index for request in run.engine.dispatcher.queue) == left
    if left:
        assert scaler is None
        members = run.engine.membership.members
        assert not any(member.is_there or member.returns for member in members)

    check_lives(run, replicas)
    for member in run.engine.membership.members:
        assert member.load_requests == member.load_tokens == member.waiting_requests == 0
        assert member.kv_usage == 0.0
