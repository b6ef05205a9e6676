"""Random candidates: proposed within the narrowed space, checked and simulated or told why not."""

import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.effort import examples
from tests.unit.search.problems import problem
from twin.errors import InputError
from twin.llm.quality import kv_error, weight_error
from twin.search.candidates import gpus_of
from twin.search.domains import values_of
from twin.search.evaluate import Evaluator
from twin.search.feasibility import check
from twin.search.objectives import OBJECTIVES
from twin.search.problem import Limits
from twin.search.proposal import has_effect, propose, suggested, value_at

TINY = {
    "workload.num_requests": 12,
    "workload.priorities": {0: 1, 1: 1},
    "clients": {"timeout_s": 20, "retry": {"kind": "fixed", "max_attempts": 2}},
}
LIMITS = Limits(gpus=3, max_kv_error=0.05, max_weight_error=0.02)
GROUNDS = [
    ("vllm", {}), ("any", {}), ("sglang", {}), ("trtllm", {}), ("vllm", {"gpu": "l40s"}),
    ("any", {"gpu": "a100_sxm"}), ("vllm", {"llm": "qwen3-30b-a3b"}), ("trtllm", {"gpu": "l40s"}),
]  # fmt: skip


@cache
def evaluator(index):
    """Return an evaluator of a problem; it remembers, as in a search."""
    engine, overrides = GROUNDS[index]
    found = problem({**TINY, **overrides}, engine=engine, objectives=tuple(OBJECTIVES),
                    limits=LIMITS)  # fmt: skip
    return Evaluator(found)


def drawn(found, seed):
    rng = random.Random(seed)
    return propose(found, lambda knob: rng.choice(values_of(knob.domain)))


@settings(max_examples=examples(80), deadline=None)
@given(index=st.integers(0, len(GROUNDS) - 1), seed=st.integers(0, 10**6))
def test_proposals_stay_within_what_was_narrowed(index, seed):
    found = evaluator(index).problem
    candidate = drawn(found, seed)
    rows = {knob.key: knob for knob in found.knobs}
    assert not set(candidate) & set(found.dropped)
    for key, value in candidate.items():
        assert value in values_of(rows[key].domain)
        assert has_effect(found, candidate, rows[key])
    assert kv_error(value_at(found, candidate, "policy.kv_cache_dtype")) <= LIMITS.max_kv_error
    assert weight_error(value_at(found, candidate, "policy.quantization")) <= 0.02
    told = suggested(found, candidate)
    assert propose(found, lambda knob: told[knob.key]) == candidate


@settings(max_examples=examples(40), deadline=None)
@given(index=st.integers(0, len(GROUNDS) - 1), seed=st.integers(0, 10**6))
def test_candidate_is_simulated_or_has_a_reason(index, seed):
    mine = evaluator(index)
    candidate = drawn(mine.problem, seed)
    found = mine.evaluate(candidate)
    if check(mine.problem, candidate) is not None:
        assert found.infeasible == check(mine.problem, candidate)
        return
    if found.infeasible is not None:
        assert found.infeasible
        assert "\n" not in found.infeasible
        return
    assert set(found.objectives) == set(OBJECTIVES)
    assert "unserved" in found.violations
    assert found.figures["requests"] >= 12
    assert gpus_of(mine.scenario(candidate).file) <= LIMITS.gpus


@settings(max_examples=examples(8), deadline=None)
@given(index=st.integers(0, 3), seed=st.integers(0, 10**6))
def test_evaluated_anew_it_is_equal(index, seed):
    mine = evaluator(index)
    candidate = drawn(mine.problem, seed)
    assert Evaluator(mine.problem).evaluate(candidate) == mine.evaluate(candidate)


def test_most_candidates_can_be():
    for index in range(4):
        found = evaluator(index).problem
        possible = sum(check(found, drawn(found, seed)) is None for seed in range(200))
        assert possible > 80, GROUNDS[index]


def test_scenario_of_what_cannot_be_is_an_input_error():
    with pytest.raises(InputError):
        evaluator(0).scenario({"policy.block_size": 0})
