"""Invariants of whole runs on random policies and workloads, scarce memory included."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from hwmodels.host import HostCosts
from tests.properties.effort import examples
from tests.unit.engine import support
from twin.engine.result import FINISHED, REJECTED
from twin.workload.build import load_traces
from twin.workload.spec import WorkloadSpec

MAX_MODEL_LEN = 192

lengths = st.one_of(
    st.integers(1, 60),
    st.builds(
        lambda low, more: {"kind": "uniform", "low": low, "high": low + more},
        st.integers(1, 40),
        st.integers(0, 60),
    ),
)
finishes = st.sampled_from(["stop", "length"])
synthetic = st.fixed_dictionaries(
    {
        "kind": st.just("synthetic"),
        "arrivals": st.fixed_dictionaries(
            {"kind": st.sampled_from(["poisson", "constant"]), "rate": st.sampled_from([0.2, 2, 9])}
        ),
        "num_requests": st.integers(1, 30),
        "prompt_tokens": lengths,
        "output_tokens": lengths,
        "priorities": st.sampled_from([None, {0: 1.0, 3: 2.0}]),
        "prefixes": st.sampled_from([None, {"num_prefixes": 2, "prefix_tokens": 40}]),
        "finish": finishes,
    }
)
closed_loop = st.fixed_dictionaries(
    {
        "kind": st.just("closed_loop"),
        "concurrency": st.integers(1, 12),
        "num_requests": st.integers(1, 40),
        "prompt_tokens": lengths,
        "output_tokens": lengths,
        "think_time_s": st.sampled_from([0.0, 0.5]),
        "finish": finishes,
    }
)
sessions = st.fixed_dictionaries(
    {
        "kind": st.just("sessions"),
        "arrivals": st.just({"kind": "poisson", "rate": 1.0}),
        "num_sessions": st.integers(1, 8),
        "turns": st.integers(1, 6),
        "system_prompt_tokens": st.sampled_from([0, 33]),
        "message_tokens": lengths,
        "answer_tokens": lengths,
        "next_turn": st.sampled_from(
            [
                {"kind": "after_answer", "think_time_s": 1.0},
                {"kind": "open_loop", "interval_s": 2.0},
            ]
        ),
        "finish": finishes,
    }
)
shared_prefix = st.fixed_dictionaries(
    {
        "kind": st.just("shared_prefix"),
        "behaviour": st.sampled_from(["cycle", "grow"]),
        "num_groups": st.integers(1, 3),
        "prompts_per_group": st.integers(1, 3),
        "system_prompt_tokens": st.sampled_from([0, 40]),
        "question_tokens": st.integers(1, 30),
        "output_tokens": st.integers(1, 20),
        "stages": st.just([{"rate": 2.0, "duration_s": 5.0}, {"rate": 1.0, "duration_s": 4.0}]),
    }
)
workloads = st.one_of(synthetic, closed_loop, sessions, shared_prefix)
policies = st.fixed_dictionaries(
    {
        "async_scheduling": st.booleans(),
        "max_num_seqs": st.sampled_from([1, 2, 5, 16]),
        "max_num_batched_tokens": st.sampled_from([16, 33, 192, 512]),
        "block_size": st.sampled_from([1, 8, 16, 32]),
        "num_gpu_blocks": st.sampled_from([193, 200, 260]),
        "enable_prefix_caching": st.booleans(),
        "long_prefill_token_threshold": st.sampled_from([0, 7, 64]),
        "scheduling_policy": st.sampled_from(["fcfs", "priority"]),
        "scheduler_reserve_full_isl": st.booleans(),
        "watermark": st.sampled_from([0.0, 0.05]),
    }
)
HOST = HostCosts(0.01, 0.001, 0.01, 0.001, 0.002, 0.05, source="test")


def scarce(policy):
    """Blocks for one longest request and a little more, whatever the block size."""
    per_request = -(-MAX_MODEL_LEN // policy["block_size"])
    spare = (policy["num_gpu_blocks"] - 193) * 16 // policy["block_size"]
    return {**policy, "num_gpu_blocks": 1 + per_request + spare, "max_model_len": MAX_MODEL_LEN}


def run(workload, policy, replicas, seed, step_s=0.2):
    spec = TypeAdapter(WorkloadSpec).validate_python(workload)
    source = load_traces(spec, ".").source(np.random.SeedSequence(seed), MAX_MODEL_LEN)
    return support.run(source, step_s, HOST, replicas, **scarce(policy))


@settings(max_examples=examples(120), deadline=None)
@given(workloads, policies, st.integers(1, 3), st.integers(0, 5))
def test_nothing_is_lost_and_time_only_goes_forward(workload, policy, replicas, seed):
    engine, replica_list, _ = run(workload, policy, replicas, seed)
    table, steps = engine.requests.table(), engine.steps.table()

    # Everything ended: finished, or turned away because its prompt leaves no room.
    done = table.outcome == FINISHED
    assert np.all(done | (table.outcome == REJECTED))
    assert np.all(table.prompt_tokens[~done] >= MAX_MODEL_LEN)

    # Tokens are conserved: each request got what it asked for, cut at the context limit.
    for state in engine.requests.states:
        if state is None:
            continue
        request = state.request
        room = MAX_MODEL_LEN - request.prompt_tokens
        wanted = min(request.output_tokens, room)
        assert table.output_tokens[request.index] == wanted == state.num_output
        assert not state.blocks

    # Timelines.
    assert np.all(table.arrival_s[done] <= table.scheduled_s[done])
    assert np.all(table.scheduled_s[done] < table.first_token_s[done])
    assert np.all(table.first_token_s[done] <= table.finish_s[done])
    gaps = np.array(engine.requests.itl_s)
    assert gaps.size == int(np.maximum(table.output_tokens - 1, 0).sum())
    assert np.all(gaps > 0)

    # A replica runs one step at a time, and never holds more than there is.
    for replica in replica_list:
        mine = steps.replica == replica.index
        assert np.all(steps.start_s[mine][1:] >= steps.end_s[mine][:-1])
        assert np.all(steps.used_blocks[mine] <= replica.scheduler.usable_blocks)
        assert replica.scheduler.free_blocks == replica.scheduler.usable_blocks
        assert replica.scheduler.num_running == replica.scheduler.num_waiting == 0
    budget = policy["max_num_batched_tokens"]
    assert np.all(steps.prefill_tokens + steps.decode_tokens <= budget)
    assert np.all(steps.running <= policy["max_num_seqs"])

    # Work is conserved: without caching and preemption every token is computed once, the last
    # one of each request never (a step past an unforeseen stop token may be wasted).
    if not policy["enable_prefix_caching"] and not table.preemptions.any():
        computed = int((steps.prefill_tokens + steps.decode_tokens).sum())
        needed = int((table.prompt_tokens + table.output_tokens - 1)[done].sum())
        assert needed <= computed <= needed + int(done.sum())


@settings(max_examples=examples(40), deadline=None)
@given(workloads, policies, st.integers(1, 3))
def test_same_seed_same_bytes(workload, policy, replicas):
    first, _, _ = run(workload, policy, replicas, seed=3)
    second, _, _ = run(workload, policy, replicas, seed=3)
    for one, other in (
        (first.requests.table(), second.requests.table()),
        (first.steps.table(), second.steps.table()),
    ):
        for name in type(one).__dataclass_fields__:
            a, b = getattr(one, name), getattr(other, name)
            assert a == b if name == "name" else a.tobytes() == b.tobytes()


@settings(max_examples=examples(60), deadline=None)
@given(closed_loop, policies, st.integers(1, 3), st.integers(0, 5))
def test_closed_loop_keeps_exactly_its_concurrency_in_flight(workload, policy, replicas, seed):
    workload = {**workload, "think_time_s": 0.0}
    engine, _, _ = run(workload, policy, replicas, seed)
    table = engine.requests.table()
    concurrency = min(workload["concurrency"], workload["num_requests"])
    assert len(table) == workload["num_requests"]

    # In flight from arrival to finish; a request that follows an answer arrives at that instant.
    events = [(t, 1) for t in table.arrival_s] + [(t, -1) for t in table.finish_s]
    in_flight, last_start = 0, float(table.arrival_s.max())
    moments = sorted({t for t, _ in events})
    for moment in moments:
        in_flight += sum(change for t, change in events if t == moment)
        if moment < last_start:
            assert in_flight == concurrency
        else:  # the requests have run out
            assert in_flight <= concurrency
    assert in_flight == 0


@settings(max_examples=examples(60), deadline=None)
@given(
    sessions,
    st.booleans(),
    st.sampled_from([1, 8, 16, 32]),
    st.integers(0, 3),
)
def test_a_turn_hits_the_blocks_of_the_turn_before(workload, asynchronous, block_size, seed):
    """Ample memory: turn k+1 hits floor((P + O - 1) / block_size) blocks of turn k."""
    spec = TypeAdapter(WorkloadSpec).validate_python(workload)
    source = load_traces(spec, ".").source(np.random.SeedSequence(seed), MAX_MODEL_LEN)
    engine, _, _ = support.run(
        source,
        0.2,
        max_model_len=MAX_MODEL_LEN,
        block_size=block_size,
        num_gpu_blocks=20_000,
        async_scheduling=asynchronous,
    )
    table = engine.requests.table()
    for session in np.unique(table.session):
        rows = np.flatnonzero(table.session == session)
        rows = rows[np.argsort(table.turn[rows])]
        for before, after in pairwise(rows):
            total = int(table.prompt_tokens[before] + table.output_tokens[before])
            before_ids = engine.requests.requests[before].content.ids
            if engine.requests.requests[after].content.ids[: len(before_ids)] != before_ids:
                continue  # the conversation outgrew the context and started anew
            cached = total - 1
            expected = cached // block_size * block_size
            # A hit never covers a whole prompt, and the system prompt may be someone else's.
            assert table.cached_tokens[after] == min(
                expected, (int(table.prompt_tokens[after]) - 1) // block_size * block_size
            )
