"""Scenarios from files and from plain data."""

from pathlib import Path

import pytest
import yaml

from twin.engine import simulate
from twin.errors import InputError
from twin.load import load_scenario, scenario_from
from twin.load.capacity_question import CapacityQuestion, answer
from twin.load.examples import FOLDER
from twin.scenario import DEFAULT_VERSIONS

TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"


def example():
    data = yaml.safe_load((FOLDER / "chat-h100.yaml").read_text())
    data["workload"]["num_requests"] = 20
    return data


def test_plain_data_and_a_file_give_the_same_run(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(example()))
    one, other = simulate(load_scenario(path)), simulate(scenario_from(example()))
    assert one.requests.finish_s.tobytes() == other.requests.finish_s.tobytes()


def test_relative_paths_start_from_the_scenario_and_are_reported_whole(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text(TRACE)
    data = {**example(), "workload": {"kind": "trace", "path": "t.csv"}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(data))
    loaded = load_scenario(tmp_path / "s.yaml")
    assert loaded.as_dict()["workload"]["path"] == str(tmp_path / "t.csv")
    assert scenario_from(data, base=tmp_path).as_dict() == loaded.as_dict()


def test_null_keys_are_left_out():
    data = {**example(), "policy": None, "slo": None, "horizon_s": None}
    assert scenario_from(data).file.policy.block_size == 16
    overridden = scenario_from(example(), overrides={"policy.block_size": None})
    assert overridden.file.policy.block_size == 16


def test_priorities_have_whole_numbers_for_keys(tmp_path):
    path = tmp_path / "s.yaml"
    text = yaml.safe_dump(example()).replace(
        "kind: synthetic", "kind: synthetic\n  priorities: {0: 1, 10: 9}"
    )
    path.write_text(text)
    result = simulate(load_scenario(path, {"policy.scheduling_policy": "priority"}))
    assert set(result.requests.priority.tolist()) <= {0, 10}


def test_eager_engines_keep_no_memory_for_graphs():
    graphs = scenario_from(example())
    eager = scenario_from(example(), overrides={"policy.enforce_eager": True})
    assert eager.num_gpu_blocks > graphs.num_gpu_blocks
    assert eager.capacity.cuda_graph_bytes == 0


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (
            {"enable_chunked_prefill": False, "max_num_batched_tokens": 4096},
            "max_num_batched_tokens 4096 is below max_model_len 131072",
        ),
        (
            {"max_model_len": 4096, "long_prefill_token_threshold": 4097},
            "long_prefill_token_threshold 4097 is above max_model_len 4096",
        ),
    ],
)
def test_what_the_engine_refuses_at_start_is_refused(policy, says):
    with pytest.raises(InputError, match=says):
        scenario_from({**example(), "policy": policy})


@pytest.mark.parametrize(("engine", "tokens"), [("vllm", 16), ("sglang", 1), ("trtllm", 32)])
def test_what_an_engine_takes_by_default(engine, tokens):
    scenario = scenario_from({**example(), "engine": {"name": engine}})
    assert scenario.file.engine.version == DEFAULT_VERSIONS[engine]
    assert scenario.policy.block_size == tokens
    asked = CapacityQuestion("llama-3.1-8b", "h100_sxm", engine=engine)
    assert answer(asked).as_dict()["block_size"] == tokens


def test_step_times_name_the_profile_of_the_version():
    def note(version):
        return scenario_from({**example(), "engine": {"name": "trtllm", "version": version}}).notes

    assert any("under trtllm 1.0.0rc3" in one for one in note("1.0.0"))
    assert any("under trtllm 1.3.0rc20" in one for one in note("1.3.0"))


def test_a_bare_name_is_the_example_and_a_path_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chat-h100").write_text(yaml.safe_dump({**example(), "name": "mine"}))
    assert load_scenario("chat-h100").file.name == "chat-h100"
    for path in ("./chat-h100", str(tmp_path / "chat-h100"), Path("chat-h100")):
        assert load_scenario(path).file.name == "mine"
