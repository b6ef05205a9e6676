"""How Optuna sees a knob, and back."""

import pytest

from twin.search.knob import Choices, Knob, Powers, Span
from twin.search.study.drawing import parameter_of


def knob(domain):
    return Knob("policy.x", domain, frozenset(), "", {})


@pytest.mark.parametrize(
    ("domain", "name", "drawn", "values"),
    [
        (Choices(("a", None, 3)), "policy.x", ["a", None, 3], ["a", None, 3]),
        (Powers(8, 64), "log2(policy.x)", [3, 4, 5, 6], [8, 16, 32, 64]),
        (Span(1, 4, 1), "policy.x", [1, 2, 3, 4], [1, 2, 3, 4]),
        (Span(0.8, 0.83, 0.01), "policy.x", [0.8, 0.81, 0.82, 0.8300000000000001],
         [0.8, 0.81, 0.82, 0.83]),
    ],
)  # fmt: skip
def test_what_is_drawn_becomes_a_value_of_the_domain_and_back(domain, name, drawn, values):
    parameter = parameter_of(knob(domain))
    assert parameter.name == name
    assert [parameter.decode(one) for one in drawn] == values
    for one, value in zip(drawn, values, strict=True):
        assert type(parameter.decode(one)) is type(value)
        assert parameter.nearest(value) == (one if not isinstance(one, float) else value)


@pytest.mark.parametrize(
    ("domain", "value", "nearest"),
    [
        (Powers(8, 64), 1000, 6),
        (Powers(8, 64), 50, 6),
        (Powers(8, 64), None, 3),
        (Span(0.0, 0.1, 0.05), 0.5, 0.1),
        (Span(0.0, 0.1, 0.05), None, 0.0),
        (Choices((1, 2)), 5, 1),
    ],
)
def test_a_default_outside_the_domain_is_told_as_the_nearest_in_it(domain, value, nearest):
    assert parameter_of(knob(domain)).nearest(value) == nearest


def test_a_span_that_its_step_does_not_divide_ends_at_the_last_step():
    parameter = parameter_of(knob(Span(0.0, 1.0, 0.3)))
    assert parameter.distribution.high == pytest.approx(0.9)
    assert parameter.nearest(1.0) == pytest.approx(0.9)
