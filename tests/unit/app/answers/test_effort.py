"""How long a forecast may take is told without drawing what it asks for."""

import time
from collections.abc import Mapping

import pytest

from app.answers.capacity.lengths import lengths_of
from app.answers.forecast.effort import AT_ONCE_S, Pace, expected_requests
from app.answers.forecast.sampled import MOST, first_of
from app.answers.setup import Setup
from twin.workload.build import LoadedWorkload

_MODEL = {"schema_version": 1, "llm": "llama-3.1-8b", "gpu": "h100_sxm"}
_LENGTHS = {"prompt_tokens": 100, "output_tokens": 10}
_LONG = {"kind": "synthetic", "arrivals": {"kind": "poisson", "rate": 1e6}, "duration_s": 9.0}


@pytest.mark.parametrize(
    "setup",
    [
        Setup("chat-h100", None, {"workload.num_requests": 10_000_000}),
        Setup("", {**_MODEL, "workload": {**_LONG, **_LENGTHS}}),
    ],
)
def test_ten_million_requests_are_not_drawn_to_be_counted(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draws(workload: LoadedWorkload, *arguments: object) -> None:
        raise AssertionError("it draws")

    monkeypatch.setattr(LoadedWorkload, "source", draws)
    expected = expected_requests(setup.scenario())
    assert expected is not None
    assert expected >= 9_000_000
    assert Pace().expected_s("x", expected) > AT_ONCE_S


def test_few_requests_are_counted_as_they_are() -> None:
    scenario = Setup("chat-h100", None, {"workload.num_requests": 300}).scenario()
    assert expected_requests(scenario) == 300


@pytest.mark.parametrize("changes", [{"workload.num_requests": 10_000_000}, {}])
def test_lengths_are_those_of_the_first_requests(changes: Mapping[str, int]) -> None:
    _, inputs = Setup("chat-h100", None, changes).inputs()
    started_s = time.monotonic()
    found = lengths_of(inputs.workload, 0, 8192)
    assert time.monotonic() - started_s < 20
    assert found.cut == bool(changes)
    assert found.prompt.size <= MOST


def test_a_workload_that_is_small_stays_as_it_is() -> None:
    _, inputs = Setup("chat-h100").inputs()
    assert first_of(inputs.workload) is inputs.workload


def test_a_setup_that_was_given_up_is_remembered() -> None:
    pace = Pace()
    assert not pace.is_slow("digest")
    pace.give_up("digest")
    assert pace.is_slow("digest")
