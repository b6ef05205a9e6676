"""Break-evens of made-up costs, where they are known."""

import pytest

from twin.llm.kv_break_even import BreakEven, KvSide, contexts_up_to, kv_break_even


def side(base_s, slope_s, prefill_s=0.0, square_s=0.0):
    return KvSide(
        lambda seqs, context: base_s + slope_s * seqs * context,
        lambda tokens, cached: prefill_s + square_s * (tokens - cached) ** 2,
    )


PLAIN = side(6.44e-3, 4.37e-8)


def test_two_lines_cross_where_they_do():
    # ITL of Llama-3.1-8B on one H100, as vLLM's authors published its lines.
    fp8 = side(6.58e-3, 2.37e-8)
    found = kv_break_even(PLAIN, fp8, (1, 4), 131072)
    assert found[1].first == pytest.approx(7000, abs=1)
    assert found[4].first == pytest.approx(1750, abs=1)
    assert found[1].last == found[4].last == 131072


def test_up_to_the_longest_context_and_not_beyond():
    fp8 = side(6.58e-3, 2.37e-8)
    assert kv_break_even(PLAIN, fp8, (1,), 7002)[1].last == 7002
    assert kv_break_even(PLAIN, fp8, (1,), 6998)[1] is None


def test_equal_is_not_faster_and_always_faster_begins_at_the_first():
    assert kv_break_even(PLAIN, PLAIN, (1,), 4096)[1] is None
    assert kv_break_even(PLAIN, side(6e-3, 4e-8), (1,), 4096)[1] == BreakEven(16, 4096)


def test_what_prefill_loses_ends_the_gain():
    plain, slower = side(1e-3, 1e-8), side(1.01e-3, 0.5e-8, square_s=1e-11)
    alone = kv_break_even(plain, slower, (8,), 131072)[8]
    with_prefill = kv_break_even(plain, slower, (8,), 131072, output_tokens=64)[8]
    assert alone.last == 131072
    assert with_prefill.first > alone.first - 64
    assert with_prefill.last < 131072

    def gain(prompt):
        return plain.request_s(8, prompt, 64) - slower.request_s(8, prompt, 64)

    assert gain(with_prefill.first) > 0 >= gain(with_prefill.first - 1)
    assert gain(with_prefill.last) > 0 >= gain(with_prefill.last + 1)


def test_cached_tokens_are_not_computed():
    one = side(1e-3, 0.0, square_s=1e-9)
    assert one.request_s(1, 1000, 1, cached_tokens=900) == pytest.approx(1e-3 + 1e-5)


def test_contexts_end_with_the_longest():
    assert contexts_up_to(16) == [16]
    assert contexts_up_to(64, 1) == [16, 32, 64]
