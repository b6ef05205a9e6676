"""The running pass: caps, preemption, victims."""

from collections.abc import Callable
from typing import Any

from twin.request import Status

Make = Callable[..., Any]


def test_threshold_caps_a_request_only_while_others_are_there(engine: Make, chunks: Make) -> None:
    bench = engine(long_prefill_token_threshold=30)
    bench.add(250, 5)
    assert chunks(bench.step()) == [(0, 100)]
    assert chunks(bench.step()) == [(0, 100)]
    bench.add(45, 5)
    assert chunks(bench.step()) == [(0, 30), (1, 30)]
    assert chunks(bench.step()) == [(0, 20), (1, 15)]


def test_threshold_spares_what_is_at_it(engine: Make, chunks: Make) -> None:
    bench = engine(long_prefill_token_threshold=30)
    bench.add(30)
    bench.add(31)
    assert chunks(bench.step()) == [(0, 30), (1, 30)]
    assert chunks(bench.step()) == [(0, 1), (1, 1)]


def test_a_waiting_request_counts_for_the_threshold(engine: Make, chunks: Make) -> None:
    bench = engine(long_prefill_token_threshold=30, max_num_seqs=1)
    bench.add(90)
    bench.add(10)
    assert chunks(bench.step()) == [(0, 30)]


def test_positions_stay_inside_the_context(engine: Make, chunks: Make) -> None:
    bench = engine(max_num_batched_tokens=300)
    bench.add(400)
    assert chunks(bench.step()) == [(0, 300)]
    assert chunks(bench.step()) == [(0, 99)]
    assert chunks(bench.step()) == []

    bench = engine(max_num_batched_tokens=300)
    state = bench.add(399, 50)
    bench.step()
    assert chunks(bench.step()) == [(0, 99)]
    assert (state.status, state.num_output, state.finish_reason) == (Status.FINISHED, 1, "length")


def test_a_request_without_work_keeps_its_place(engine: Make, chunks: Make, indices: Make) -> None:
    bench = engine(max_num_batched_tokens=399)
    bench.add(400)
    bench.step()
    bench.add(20)
    assert chunks(bench.step()) == [(1, 20)]
    assert indices(bench.scheduler.running) == [0, 1]


def test_a_block_is_taken_just_when_the_last_is_full(engine: Make) -> None:
    bench = engine()
    state = bench.add(19)
    bench.step()
    assert len(state.blocks) == 2
    bench.step()
    assert (state.num_computed, len(state.blocks)) == (20, 2)
    bench.step()
    assert (state.num_computed, len(state.blocks)) == (21, 3)


def test_fcfs_preempts_the_last_and_itself_last(engine: Make, chunks: Make, indices: Make) -> None:
    bench = engine(num_gpu_blocks=5 + 1)
    bench.add(15)
    bench.add(10)
    bench.add(15)
    assert bench.step().total_tokens == 40
    plan = bench.step()
    assert chunks(plan) == [(0, 1), (1, 1)]
    assert indices(plan.preempted) == [2]
    state = bench.states[2]
    assert (state.num_computed, state.blocks, state.num_output) == (0, [], 1)
    assert (state.status, state.preemptions) == (Status.PREEMPTED, 1)

    bench = engine(num_gpu_blocks=5 + 1)
    bench.add(15)
    bench.add(15)
    bench.add(10)
    bench.step()
    plan = bench.step()
    assert chunks(plan) == [(0, 1), (1, 1)]
    assert indices(plan.preempted) == [2]


def test_one_block_more_and_nobody_is_preempted(engine: Make, chunks: Make) -> None:
    bench = engine(num_gpu_blocks=6 + 1)
    bench.add(15)
    bench.add(10)
    bench.add(15)
    bench.step()
    plan = bench.step()
    assert chunks(plan) == [(0, 1), (1, 1), (2, 1)]
    assert plan.preempted == []


def test_fcfs_queues_a_later_victim_ahead(engine: Make, indices: Make) -> None:
    bench = engine(
        num_gpu_blocks=5 + 1,
        max_num_batched_tokens=50,
        long_prefill_token_threshold=30,
        scheduler_reserve_full_isl=False,
    )
    bench.add(50, 10)
    bench.add(10)
    bench.add(10)
    bench.step()
    plan = bench.step()  # request 0 needs 2 more blocks and none is free
    assert indices(plan.preempted) == [2, 1]
    assert [bench.core.waiting.pop().request.index for _ in range(2)] == [1, 2]


def test_nobody_is_admitted_in_a_step_with_a_preemption(engine: Make, chunks: Make) -> None:
    bench = engine(num_gpu_blocks=5 + 1)
    bench.add(15)
    bench.add(10)
    bench.add(15)
    bench.step()
    bench.add(5)
    assert chunks(bench.step()) == [(0, 1), (1, 1)]
    # Request 2 has 16 tokens and 1 block is free: it blocks the head of the queue.
    assert chunks(bench.step()) == [(0, 1), (1, 1)]


def test_priority_undoes_a_victim_and_returns_its_budget(
    engine: Make, chunks: Make, indices: Make
) -> None:
    for asynchronous in (False, True):
        bench = engine(
            scheduling_policy="priority",
            max_num_batched_tokens=50,
            long_prefill_token_threshold=20,
            num_gpu_blocks=12 + 1,
            scheduler_reserve_full_isl=False,
            async_scheduling=asynchronous,
        )
        victim = bench.add(200, priority=5)
        bench.step()
        bench.add(100, priority=0)
        bench.add(100, priority=0)
        assert chunks(bench.step()) == [(0, 20), (1, 20), (2, 10)]
        plan = bench.schedule()
        # Request 0 took 20 tokens and the last 2 blocks; request 1 takes them away, and request 2
        # finds 30 tokens of budget, not 10.
        assert chunks(plan) == [(1, 20), (2, 20)]
        assert (plan.total_tokens, indices(plan.preempted)) == (40, [0])
        assert (victim.num_computed, victim.blocks) == (0, [])
        assert victim.in_flight == (20 if asynchronous else 0)
        assert len(plan.epochs) == (2 if asynchronous else 0)


def test_an_undone_victim_samples_nothing(engine: Make, chunks: Make, indices: Make) -> None:
    bench = engine(scheduling_policy="priority", num_gpu_blocks=3 + 1)
    bench.add(15, priority=5)
    bench.step()
    bench.add(10, priority=0)
    bench.step()
    plan = bench.schedule()
    assert chunks(plan) == [(1, 1)]
    assert indices(plan.samples) == [1]
    assert indices(bench.update().delivered) == [1]
    assert bench.states[0].num_output == 2


def test_of_equal_victims_the_first_in_running_goes(engine: Make, indices: Make) -> None:
    bench = engine(scheduling_policy="priority", num_gpu_blocks=5 + 1)
    bench.add(15, priority=1, arrival_s=0.0)
    bench.add(15, priority=1, arrival_s=0.0)
    bench.add(10, priority=0, arrival_s=0.0)
    assert bench.step().total_tokens == 40
    assert indices(bench.scheduler.running) == [2, 0, 1]
    assert indices(bench.step().preempted) == [0]


def test_a_later_arrival_is_the_victim_of_equal_priority(engine: Make, indices: Make) -> None:
    bench = engine(scheduling_policy="priority", num_gpu_blocks=5 + 1)
    bench.add(15, priority=1, arrival_s=1.0)
    bench.add(15, priority=1, arrival_s=2.0)
    bench.add(10, priority=0, arrival_s=3.0)
    bench.step()
    assert indices(bench.step().preempted) == [1]


def test_priority_goes_on_after_a_request_preempts_itself(
    engine: Make, chunks: Make, indices: Make
) -> None:
    bench = engine(scheduling_policy="priority", num_gpu_blocks=5 + 1)
    bench.add(15, priority=0)
    bench.step()
    bench.add(9, priority=9)
    bench.step()
    bench.add(15, priority=0)
    bench.step()
    assert indices(bench.scheduler.running) == [0, 1, 2]
    plan = bench.step()
    assert chunks(plan) == [(0, 1), (2, 1)]
    assert indices(plan.preempted) == [1]


def test_blocks_freed_by_an_update_serve_the_next_step(engine: Make) -> None:
    bench = engine(num_gpu_blocks=4 + 1)
    bench.add(25, 2)
    state = bench.add(15, 20)
    bench.step()
    assert chunks_of(bench) == {0: [1, 2, 3]}
    bench.step()
    assert bench.pool.free_order() == [3, 2, 1, 4]
    bench.step()
    assert state.blocks == [3, 2]


def chunks_of(bench: Any) -> dict[int, list[int]]:
    return {state.request.index: state.blocks for state in bench.scheduler.running}
