"""Keys of any size as numbers of 64 bits."""

from twin.engine.compiled.keys import KeyNumbers


def test_small_keys_stay():
    assert KeyNumbers().of([1, 2, 2**62 - 1]) == [1, 2, 2**62 - 1]


def test_large_keys_have_numbers_that_nobody_else_has():
    numbers = KeyNumbers()
    first = numbers.of([5, 2**80, 2**90])
    assert first[0] == 5
    assert len({*first}) == 3
    assert numbers.of([2**90, 2**80, 7]) == [first[2], first[1], 7]
    assert all(-(2**62) <= number < 2**62 for number in first)
    # A request's own keys are ~((index << 24) + block): far above.
    assert max(first[1:]) < ~((2**30) << 24)
