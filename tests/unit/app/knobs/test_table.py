"""The table of knobs: every row is a key of a scenario, and what it offers can be simulated."""

import pytest

from app.answers.setup import Setup, problem_of
from app.knobs.knob import Knob
from app.knobs.table import BY_KEY, BY_SHORT, GROUPS, KNOBS
from app.knobs.values import options_of, parsed, shown, value_at, written
from twin.errors import InputError
from twin.load.examples import example_names


def test_names_are_unique() -> None:
    assert len(BY_SHORT) == len(BY_KEY) == len(KNOBS)
    assert {knob.group for knob in KNOBS} == set(GROUPS)
    for engine in ("vllm", "sglang", "trtllm"):
        titles = [k.title(engine) for k in KNOBS if engine in k.engines and not k.workloads]
        assert len(titles) == len(set(titles))


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.short)
def test_a_knob_can_be_turned_to_something_else(knob: Knob) -> None:
    """At least one of its values gives another scenario that can be simulated."""
    examples = [
        name for name in example_names() if not knob.workloads or _kind(name) in knob.workloads
    ]
    if not examples:  # a trace is never built in
        assert knob.workloads == ("trace",)
        return
    engine = sorted(knob.engines)[-1]
    base = {} if engine == "vllm" else {"engine.name": engine}
    options = knob.options or ((7.0,) if knob.kind == "number" else (True, False))
    setups = [Setup(examples[0], None, {**base, knob.key: option}) for option in options]
    assert any(not problem_of(setup) for setup in setups)


def _kind(name: str) -> str:
    return str(value_at(Setup(name).file()[0].model_dump(), "workload.kind"))


def test_values_are_written_and_read_back() -> None:
    for knob in KNOBS:
        for option in knob.options:
            if option is not None:
                assert parsed(knob, written(option)) == option


def test_a_scenarios_own_value_joins_what_is_offered() -> None:
    knob = BY_SHORT["seqs"]
    options = options_of(knob, 200, None)
    assert 200 in options
    assert options[0] is None
    numbers = [o for o in options if o is not None]
    assert numbers == sorted(numbers)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("short", "text"),
    [("seqs", "many"), ("tp", "3"), ("prefix", "maybe"), ("rate", "x"), ("kv", "fp4"),
     ("seqs", "1.5")],
)  # fmt: skip
def test_what_a_knob_cannot_have_is_refused(short: str, text: str) -> None:
    with pytest.raises(InputError):
        parsed(BY_SHORT[short], text)


def test_values_as_a_reader_sees_them() -> None:
    assert shown(None, 1024) == "default (1,024)"
    assert shown(True) == "on"
    assert shown(0.92) == "0.92"
