import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hwmodels.host import HostCosts
from tests.unit.engine.support import NO_HOST, ConstantTimer, ListSource, limits
from twin.engine.clock import Clock
from twin.engine.cluster.pool import pool_of
from twin.engine.data_parallel import (
    DataParallelReplica,
    LockstepRank,
    ReportingRank,
)
from twin.engine.gpu import OneStage
from twin.engine.lockstep import Lockstep, Rendezvous
from twin.engine.rank_balancer import (
    Coordinator,
    RankBalancer,
    in_flight_floor,
    waiting_weighs_four,
)
from twin.engine.reference import ReferenceEngine
from twin.engine.result import FINISHED
from twin.engine.routers import RoundRobin
from twin.engine.run import simulate
from twin.errors import InputError
from twin.load.resolve import resolve_scenario
from twin.request import Request
from twin.scenario import ScenarioFile
from twin.scheduling import VllmV1Scheduler

STEP_S = 0.01


class CountingTimer:
    """Every pass takes the time of the rank with most tokens, a millisecond a token."""

    def __init__(self):
        self.passes = []

    def times(self, shapes):
        self.passes.append([None if s is None else s.num_tokens for s in shapes])
        tokens = max(1 if s is None else s.num_tokens for s in shapes)
        return [ConstantTimer(1e-3 * tokens).step] * len(shapes)


def lockstep_run(requests, *, ranks=2, host=NO_HOST, **changes):
    clock, timer = Clock(), CountingTimer()
    shared, coordinator = Lockstep(clock, ranks, timer), Coordinator(ranks, settles=True)
    cores = [
        LockstepRank(clock, r, VllmV1Scheduler(limits(**changes)), host, (r, shared, coordinator))
        for r in range(ranks)
    ]
    balancer = RankBalancer(coordinator, waiting_weighs_four, rotates=False)
    group = DataParallelReplica(clock, 0, cores, balancer)
    source = ListSource(requests)
    engine = ReferenceEngine(clock, [pool_of([group], lambda _: True)], RoundRobin(), source, host)
    engine.run()
    return engine, timer, source


def requests(*specs):
    return [Request(i, at, prompt, output) for i, (at, prompt, output) in enumerate(specs)]


# who gets a request


@pytest.mark.parametrize(
    ("score", "args", "expected"),
    [
        (waiting_weighs_four, (2, 5, 0.9, 7), 13.0),
        (in_flight_floor, (2, 5, 0.4, 3), 7.0),
        (in_flight_floor, (2, 5, 0.4, 9), 9.0),
        (in_flight_floor, (2, 5, 1.0, 0), 7.0 + 2 * 6 * 0.5),
    ],
)
def test_scores_are_those_of_the_engine(score, args, expected):
    assert score(*args) == expected


def test_own_choices_count_until_the_next_publication():
    balancer = RankBalancer(Coordinator(2, settles=True), waiting_weighs_four, rotates=False)
    assert [balancer.choose(0.0) for _ in range(5)] == [0, 1, 0, 1, 0]
    # 5 s without any report: the counts, all zero, are published and erase the additions.
    assert balancer.choose(5.1) == 0


def test_ties_rotate_in_newer_versions():
    balancer = RankBalancer(Coordinator(3, settles=False), lambda *_: 0.0, rotates=True)
    assert [balancer.choose(0.0) for _ in range(4)] == [0, 1, 2, 0]


def test_in_flight_requests_are_remembered_and_forgotten():
    balancer = RankBalancer(Coordinator(2, settles=False), in_flight_floor, rotates=False)
    assert [balancer.choose(0.0), balancer.choose(0.0)] == [0, 1]
    balancer.ended(1)
    balancer._waiting = [0, 0]
    assert balancer.choose(0.0) == 1


def test_changes_are_published_every_100_ms():
    coordinator = Coordinator(2, settles=False)
    coordinator.advance(0.0)
    coordinator.report(0, 1, (3, 4), 0.0, 0.02)
    coordinator.advance(0.099)
    assert coordinator.published[0] == (0, 0)
    coordinator.advance(0.1)
    assert coordinator.published[0] == (3, 4)


def test_ranks_in_lockstep_show_the_last_step_that_all_finished():
    coordinator = Coordinator(2, settles=True)
    coordinator.advance(0.0)
    coordinator.report(0, 1, (1, 1), 0.0, 0.02)
    coordinator.report(1, 1, (2, 2), 0.0, 0.021)
    coordinator.report(0, 2, (9, 9), 0.0, 0.05)  # step 2 has begun: step 1 is whole
    coordinator.advance(0.1)
    assert coordinator.published == [(1, 1), (2, 2)]
    coordinator.advance(0.2)
    assert coordinator.published == [(9, 9), (2, 2)]


def test_without_a_whole_step_the_coordinator_waits_for_stragglers():
    coordinator = Coordinator(2, settles=True)
    coordinator.advance(0.0)
    coordinator.report(0, 1, (1, 1), 0.0, 0.09)
    coordinator.advance(0.139)
    assert coordinator.published[0] == (0, 0)
    coordinator.advance(0.14)
    assert coordinator.published[0] == (1, 1)


# ranks in lockstep


def test_a_rendezvous_opens_with_the_last_and_starts_anew():
    clock = Clock()
    point = Rendezvous(clock, 2)
    first, none = point.meet(1, "b")
    second, both = point.meet(0, "a")
    assert first is second
    assert none is None
    assert both == ["a", "b"]
    assert point.meet(0, "c")[0] is not first


def test_an_idle_rank_runs_dummy_passes():
    engine, timer, _ = lockstep_run(requests((0.0, 4, 3)))
    assert timer.passes[0] == [4, None]
    assert [1, None] in timer.passes
    assert engine.requests.outcome == [FINISHED]


def test_ranks_rest_within_32_iterations_of_the_last_request():
    _, timer, _ = lockstep_run(requests((0.0, 4, 3)))
    assert len(timer.passes) % 32 == 0
    assert len(timer.passes) <= 64


def test_the_slower_rank_holds_up_the_other():
    engine, _, _ = lockstep_run(requests((0.0, 2, 2), (0.0, 40, 2)))
    first = engine.requests.first_token_s
    assert first[0] == first[1] == pytest.approx(0.040)


def test_every_answer_is_delivered_whole_and_in_order():
    rng = np.random.default_rng(5)
    specs = [(float(t), int(p), int(o)) for t, p, o in zip(
        np.sort(rng.uniform(0, 2, 60)), rng.integers(1, 40, 60), rng.integers(1, 30, 60),
        strict=True,
    )]  # fmt: skip
    engine, _, source = lockstep_run(requests(*specs))
    table = engine.requests.table()
    assert table.output_tokens.tolist() == [o for _, _, o in specs]
    assert (table.arrival_s <= table.scheduled_s).all()
    assert (table.scheduled_s < table.first_token_s).all()
    assert (table.first_token_s <= table.finish_s).all()
    assert sorted(index for index, _, _ in source.ends) == list(range(60))
    assert set(table.replica.tolist()) == {0, 1}
    starts = engine.steps.table()
    for rank in (0, 1):
        mine = starts.replica == rank
        assert (starts.start_s[mine][1:] >= starts.end_s[mine][:-1] - 1e-12).all()


def test_a_request_after_a_rest_wakes_all_ranks():
    engine, timer, _ = lockstep_run(requests((0.0, 4, 2), (50.0, 4, 2)))
    assert engine.requests.outcome == [FINISHED, FINISHED]
    assert engine.requests.first_token_s[1] == pytest.approx(50.004)
    assert all(len(shapes) == 2 for shapes in timer.passes)


def test_host_time_is_spent_before_the_ranks_meet():
    host = HostCosts(0.5, 0.0, 0.0, 0.0, 0.0, 0.0, source="test")
    engine, _, _ = lockstep_run(requests((0.0, 4, 1)), host=host)
    assert engine.requests.first_token_s[0] >= 0.504


def test_equal_runs_are_equal():
    specs = [(0.013 * i, 3 + i % 7, 2 + i % 5) for i in range(40)]
    first, second = (lockstep_run(requests(*specs))[0].requests.table() for _ in range(2))
    assert first.finish_s.tolist() == second.finish_s.tolist()


# ranks at their own pace


def test_ranks_of_a_dense_network_do_not_wait_for_one_another():
    clock, coordinator = Clock(), Coordinator(2, settles=False)
    timers = ConstantTimer(STEP_S), ConstantTimer(5 * STEP_S)
    cores = [
        ReportingRank(clock, r, VllmV1Scheduler(limits()), OneStage(timers[r]), NO_HOST)
        for r in range(2)
    ]
    for r, core in enumerate(cores):
        core.join(r, coordinator)
    balancer = RankBalancer(coordinator, in_flight_floor, rotates=True)
    group = DataParallelReplica(clock, 0, cores, balancer)
    source = ListSource(requests((0.0, 4, 2), (0.0, 4, 2)))
    engine = ReferenceEngine(
        clock, [pool_of([group], lambda _: True)], RoundRobin(), source, NO_HOST
    )
    engine.run()
    assert engine.requests.first_token_s == pytest.approx([STEP_S, 5 * STEP_S])
    assert balancer._in_flight == [0, 0]
    assert group.load_requests == 0


# whole scenarios


def scenario(llm, gpu="h100_sxm", *, version="0.33.0", rate=8.0, count=40, **parallelism):
    file = ScenarioFile.model_validate(
        {
            "schema_version": 1, "llm": llm, "gpu": gpu,
            "engine": {"name": "vllm", "version": version},
            "parallelism": parallelism,
            "policy": {"max_num_seqs": 16, "max_model_len": 4096},
            "workload": {
                "kind": "synthetic", "arrivals": {"kind": "poisson", "rate": rate},
                "num_requests": count, "prompt_tokens": 300, "output_tokens": 20,
            },
        }
    )  # fmt: skip
    return resolve_scenario(file, base=Path(), where="test")


@pytest.mark.parametrize(
    ("llm", "version", "spread"),
    [
        ("llama-3.1-8b", "0.33.0", {"dp": 2}),
        ("llama-3.1-8b", "0.19.0", {"dp": 3}),
        ("qwen3-30b-a3b", "0.33.0", {"dp": 2, "ep": 2}),
        ("qwen3-30b-a3b", "0.19.0", {"dp": 2, "tp": 2, "ep": 4}),
        ("qwen3-30b-a3b", "0.33.0", {"dp": 2}),
    ],
)
def test_data_parallel_scenarios_serve_every_request(llm, version, spread):
    result = simulate(scenario(llm, version=version, **spread))
    assert (result.requests.outcome == FINISHED).all()
    assert result.replicas == spread["dp"]
    assert set(result.requests.replica.tolist()) == set(range(spread["dp"]))
    assert math.isfinite(result.simulated_s)


def test_a_layer_profile_times_ranks_that_share_experts():
    one = scenario("qwen3-30b-a3b", "rtx_pro_6000", version="0.19.0", dp=2, ep=2)
    assert one.layer_profile is not None
    assert "measured on this GPU" in one.notes[-1]
    measured = simulate(one).requests
    priced = simulate(replace(one, layer_profile=None)).requests
    assert (measured.outcome == FINISHED).all()
    assert measured.finish_s.tolist() != priced.finish_s.tolist()


def test_sharing_experts_frees_memory_for_kv():
    whole, shared = (scenario("qwen3-30b-a3b", dp=d, ep=d).num_gpu_blocks for d in (1, 2))
    assert shared > whole


@pytest.mark.parametrize(
    ("spread", "message"),
    [
        ({"pp": 2, "dp": 2}, "pp 2 with dp 2 is not simulated"),
        ({"dp": 2, "tp": 2, "ep": 2}, "set ep to 4 or 1"),
    ],
)
def test_other_spreads_are_refused(spread, message):
    with pytest.raises(InputError, match=message):
        scenario("qwen3-30b-a3b", **spread)
