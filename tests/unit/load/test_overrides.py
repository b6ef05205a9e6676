from pathlib import Path

import pytest

from twin.errors import InputError
from twin.load.overrides import apply, parse_assignments


def test_values_are_read_as_yaml():
    assert parse_assignments(["a.b=32", "c=[1, 2]", "d=true", "e=text", "f="]) == {
        "a.b": 32,
        "c": [1, 2],
        "d": True,
        "e": "text",
        "f": None,
    }


@pytest.mark.parametrize("text", ["novalue", "=3", "a..b=1", ".a=1", ""])
def test_malformed_assignments(text):
    with pytest.raises(InputError, match="not key=value"):
        parse_assignments([text])


def test_input_is_left_alone_and_missing_parents_are_made():
    data = {"policy": {"block_size": 16}}
    changed = apply(data, {"policy.block_size": 32, "slo.ttft_s": 1})
    assert changed == {"policy": {"block_size": 32}, "slo": {"ttft_s": 1}}
    assert data == {"policy": {"block_size": 16}}


def test_another_engine_does_not_take_the_version_of_the_first():
    data = {"engine": {"name": "vllm", "version": "0.33.0"}}
    assert apply(data, {"engine.name": "sglang"}) == {"engine": {"name": "sglang"}}
    assert apply(data, {"engine.name": "vllm"}) == data
    both = {"engine.name": "sglang", "engine.version": "0.5.10"}
    assert apply(data, both) == {"engine": {"name": "sglang", "version": "0.5.10"}}
    assert data == {"engine": {"name": "vllm", "version": "0.33.0"}}


def test_list_positions():
    data = {"stages": [{"rate": 1}, {"rate": 2}]}
    assert apply(data, {"stages.1.rate": 5})["stages"][1]["rate"] == 5
    for key in ("stages.2.rate", "stages.x.rate", "stages.-1.rate"):
        with pytest.raises(InputError, match="not a position"):
            apply(data, {key: 5})


def test_a_scalar_holds_no_keys():
    with pytest.raises(InputError, match="holds no keys"):
        apply({"seed": 1}, {"seed.x": 2})


def test_paths_are_taken_from_the_current_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    changed = apply({"workload": {"kind": "trace", "path": "a"}}, {"workload.path": "t.csv"})
    assert Path(changed["workload"]["path"]) == tmp_path / "t.csv"


def test_a_trace_path_turns_a_synthetic_load_into_a_trace(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    data = {"workload": {"kind": "synthetic", "rate": 3, "too_long": "error"}}
    changed = apply(data, {"workload.path": "t.csv", "workload.rate_scale": 0.5})
    assert changed["workload"] == {
        "kind": "trace",
        "too_long": "error",
        "path": str(tmp_path / "t.csv"),
        "rate_scale": 0.5,
    }
