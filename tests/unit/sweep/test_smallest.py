import pytest

from twin.sweep.smallest import most_questions, smallest


@pytest.mark.parametrize("least", [1, 3])
@pytest.mark.parametrize("answer", [1, 2, 3, 4, 7, 8, 63, 64, 65])
def test_finds_the_first_and_asks_it_and_the_one_before(least, answer):
    asked = []

    def holds(number):
        asked.append(number)
        return number >= answer

    found = smallest(holds, least, 64)
    if answer > 64:
        assert found is None
        assert asked[-1] == 64
        return
    assert found == max(answer, least)
    assert found in asked
    assert found == least or found - 1 in asked
    assert len(set(asked)) == len(asked) <= most_questions(64)
    assert all(least <= number <= 64 for number in asked)
