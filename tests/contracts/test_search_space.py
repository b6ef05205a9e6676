"""Every row of the search space: it can be set, each value is one, and who has it is said."""

import itertools
from pathlib import Path

import pytest

from twin.llm.quality import KV_LOSS, LOSSLESS, WEIGHT_LOSS
from twin.load.inputs import read_inputs
from twin.load.resolve import resolve_with
from twin.load.scenario_file import read_scenario_file
from twin.load.variant import variant
from twin.scenario import DEFAULT_VERSIONS
from twin.search.candidates import value_in
from twin.search.defaults import defaults_of
from twin.search.domains import values_of
from twin.search.knob import Choices
from twin.search.space import SPACE

ROWS = {knob.key: knob for knob in SPACE}
PEOPLE = {"clients": {"timeout_s": 30.0}}


def needed(knob):
    """Return values under which a knob has its effect."""
    found = {key: allowed[0] for key, allowed in knob.needs.items()}
    for key in tuple(found):
        if key in ROWS:
            found = {**needed(ROWS[key]), **found}
    return found


def file_for(knob, value):
    engine = sorted(knob.engines)[0]
    file, base = read_scenario_file("chat-h100", {"engine": {"name": engine}, **PEOPLE})
    changes = {**needed(knob), knob.key: value}
    if engine == "vllm":
        changes.setdefault("policy.max_num_seqs", 8)
    return variant(file, changes, where="test"), base


@pytest.mark.parametrize("key", ROWS)
def test_every_value_makes_a_scenario_file(key):
    knob = ROWS[key]
    for value in values_of(knob.domain):
        if value is None:
            continue
        file, _ = file_for(knob, value)
        assert value_in(file, key) == value


@pytest.mark.parametrize("key", ROWS)
def test_row_says_who_has_it_and_what_it_does(key):
    knob = ROWS[key]
    assert knob.about
    assert len(knob.about) <= 80
    assert knob.engines
    assert knob.engines <= set(DEFAULT_VERSIONS)
    values = values_of(knob.domain)
    assert len(values) == len(set(values)) >= 2
    assert set(knob.only) <= set(values)
    assert all(engines <= knob.engines for engines in knob.only.values())


def test_keys_are_told_once_and_follow_what_they_need():
    assert len(ROWS) == len(SPACE)
    place = {knob.key: index for index, knob in enumerate(SPACE)}
    for knob in SPACE:
        for key, allowed in knob.needs.items():
            assert allowed
            if key in place:
                assert place[key] < place[knob.key]
                whole = values_of(ROWS[key].domain)
                assert set(whole) & set(allowed), "never"
                assert set(whole) - set(allowed), "always"


def test_lossy_rows_are_those_that_quality_knows():
    assert {knob.key for knob in SPACE if knob.lossy} == {
        "policy.kv_cache_dtype",
        "policy.quantization",
    }
    for key, table in (("policy.kv_cache_dtype", KV_LOSS), ("policy.quantization", WEIGHT_LOSS)):
        named = [value for value in values_of(ROWS[key].domain) if value is not None]
        assert set(named) <= set(table)
        assert all(loss is LOSSLESS or loss.error > 0 for loss in table.values())


@pytest.mark.parametrize("engine", DEFAULT_VERSIONS)
def test_every_knob_has_a_default_in_its_engine(engine):
    file, base = read_scenario_file("chat-h100", {"engine": {"name": engine}, **PEOPLE})
    inputs = read_inputs(file, Path(base), where="test")
    found = defaults_of(resolve_with(file, inputs, where="test"))
    for knob in SPACE:
        if engine in knob.engines and knob.key != "policy.quantization":
            assert found[knob.key] is not None, knob.key


def test_choices_name_what_the_policy_knows():
    knob = ROWS["policy.eviction"]
    assert isinstance(knob.domain, Choices)
    assert knob.domain.values[0] == "lru"
    nobody = [value for value, engines in knob.only.items() if not engines]
    assert set(nobody) == set(knob.domain.values) - {"lru"}
    pairs = itertools.combinations(values_of(ROWS["policy.kv_cache_dtype"].domain), 2)
    assert all(KV_LOSS[a] != KV_LOSS[b] for a, b in pairs if "per" not in a + b)
