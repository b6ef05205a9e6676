"""Batch wait: one shared counter, contexts held back while the batch is small."""

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]


def contexts(steps: list[list[tuple[int, int]]]) -> list[int]:
    """Place of the step in which each prompt of more than one token runs."""
    return [place for place, step in enumerate(steps) for _, tokens in step if tokens > 1]


def test_a_context_waits_the_iterations_then_all_go(bench: Make) -> None:
    run = bench(batch_wait_timeout_iters=3, batch_wait_max_tokens_ratio=0.9)
    run.add(10)
    run.step()
    run.add(10)
    assert contexts(run.steps(6)) == [3]
    assert run.scheduler.batch_wait.waited_iters == 0


def test_an_idle_server_does_not_wait(bench: Make) -> None:
    run = bench(batch_wait_timeout_iters=3, batch_wait_max_tokens_ratio=0.9)
    run.add(10)
    run.add(10)
    assert contexts(run.steps(2)) == [0, 0]
    assert run.scheduler.batch_wait.waited_iters == 0


@pytest.mark.parametrize(("prompt", "waits"), [(88, True), (89, False)])
def test_enough_tokens_release_at_once(bench: Make, prompt: int, waits: bool) -> None:
    # 0.9 of 100 tokens, one generation.
    run = bench(batch_wait_timeout_iters=3, batch_wait_max_tokens_ratio=0.9)
    run.add(10)
    run.step()
    run.add(prompt)
    assert (contexts(run.steps(1)) == []) is waits


def test_later_arrivals_join_a_running_count(bench: Make) -> None:
    run = bench(batch_wait_timeout_iters=4, batch_wait_max_tokens_ratio=0.9)
    run.add(10)
    run.step()
    run.add(10)
    run.steps(3)
    run.add(10)
    assert contexts(run.steps(2)) == [1, 1]  # the late one waited one iteration


def test_the_counter_is_not_reset_where_no_context_is_there(bench: Make) -> None:
    # With overlap off 1 and the waiting context leave nothing: the wait is cut by the end of 0.
    run = bench(batch_wait_timeout_iters=5, batch_wait_max_tokens_ratio=0.9)
    run.add(10, 4)
    run.step()
    run.add(10, 2)
    run.steps(3)  # held back thrice; 0 ends
    assert run.scheduler.batch_wait.waited_iters == 3
    assert contexts(run.steps(1)) == [0]  # nobody generates: no wait, and no reset either
    assert run.scheduler.batch_wait.waited_iters == 3
    run.steps(3)
    run.add(10, 20)
    run.step()
    run.add(10)
    assert contexts(run.steps(4)) == [2]  # waits only the two iterations that are left


@pytest.mark.parametrize(
    "half",
    [{"batch_wait_timeout_iters": 3}, {"batch_wait_max_tokens_ratio": 0.9}],
)
def test_both_parameters_must_be_set(bench: Make, half: dict[str, Any]) -> None:
    run = bench(**half)
    run.add(10)
    run.step()
    run.add(10)
    assert contexts(run.steps(1)) == [0]


def test_main_counts_tokens_beyond_the_cached_prefix(bench: Make) -> None:
    for stratum, waits in (("main", True), ("early", False)):
        run = bench(
            batch_wait_timeout_iters=3,
            batch_wait_max_tokens_ratio=0.5,
            enable_block_reuse=True,
            stratum=stratum,
        )
        run.add(60, 9, shared=(7, 60))
        run.step()
        run.add(65, 9, shared=(7, 60))
        assert (len(run.steps(1)[0]) == 1) is waits
