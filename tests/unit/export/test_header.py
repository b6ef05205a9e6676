import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.golden.export.cases import BASE, SUMMARY
from twin.engine import simulate
from twin.errors import InputError
from twin.export.deployment import deployment_of
from twin.export.header import comment, forecast_lines, verdict_line
from twin.export.targets import export, load_deployment
from twin.load import load_scenario, scenario_from
from twin.report.metrics import summarise
from twin.units import format_seconds
from twin.validation import policy_digest

VERDICT: dict[str, Any] = {
    "schema_version": 1,
    "verdict": "validated",
    "reasons": [],
    "dry_run": False,
    "date": "2026-11-02",
    "gpu": "NVIDIA H100",
    "driver": "580",
    "versions": {},
    "scenario_sha256": "0" * 64,
    "profile_sha256": None,
    "scenario": "mine",
    "durations": "measured",
    "left_out": [],
    "seed": 0,
    "covered_share": 0.9,
    "steps_dropped": 0,
    "overall": {"steps": 24, "median_pct": 2.5, "bias_pct": -1.0},
    "median_interval_pct": [1, 3],
    "bias_interval_pct": [-2, 1],
    "strata": [],
    "steps": [],
}


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(BASE))
    return path


def write_verdict(path: Path, **changes: Any) -> None:
    digest = policy_digest(load_scenario(path).file.policy)
    data = {**VERDICT, "policy_sha256": digest, **changes}
    path.with_suffix(".validation.json").write_text(json.dumps(data))


def test_the_forecast_is_the_simulations(scenario_file: Path) -> None:
    summary = summarise(simulate(load_scenario(scenario_file)))
    text = export(scenario_file, "vllm")["vllm.yaml"]
    for key in ("ttft_s", "tpot_s", "itl_s"):
        assert f"mean {format_seconds(summary[key]['mean'])}" in text
        assert f"p99 {format_seconds(summary[key]['p99'])}" in text
    assert f"throughput {summary['requests_per_s']:.3g} requests/s" in text


def test_a_scenario_without_an_slo_says_so() -> None:
    scenario = scenario_from({k: v for k, v in BASE.items() if k != "slo"})
    lines = forecast_lines(deployment_of(scenario, "x", {**SUMMARY, "slo": None, "slo_met": None}))
    assert "  goodput: the scenario states no SLO" in lines


def test_networks_with_experts_have_another_error_band() -> None:
    dense = forecast_lines(deployment_of(scenario_from(BASE), "x", SUMMARY))
    data = {**BASE, "llm": "qwen3-30b-a3b"}
    experts = forecast_lines(deployment_of(scenario_from(data), "x", SUMMARY))
    assert "7.6% / 21.5%" in dense[-1]
    assert "22.7% / 50.3%" in experts[-1]


def test_a_verdict_beside_the_scenario_is_told(scenario_file: Path) -> None:
    write_verdict(scenario_file)
    told = verdict_line(load_deployment(scenario_file))
    assert told == (
        "validated on NVIDIA H100, 2026-11-02: step times off by 2.5 % (median), bias -1.0 %, "
        "over 24 steps"
    )


def test_a_rehearsal_is_no_validation(scenario_file: Path) -> None:
    write_verdict(scenario_file, dry_run=True, verdict="pretended")
    assert verdict_line(load_deployment(scenario_file)).startswith(
        "not validated on hardware, only"
    )


@pytest.mark.parametrize("key", ["policy.max_num_seqs", "policy.watermark"])
def test_a_verdict_on_another_policy_is_not_told(scenario_file: Path, key: str) -> None:
    write_verdict(scenario_file)
    changed = load_deployment(scenario_file, {key: 0.5 if key.endswith("mark") else 64})
    assert changed.verdict is None
    assert "not validated on hardware; run: twin-calibrate validate" in verdict_line(changed)


def test_the_folder_of_a_search_holds_scenario_and_policy(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(json.dumps({**BASE, "policy": {"max_num_seqs": 64}}))
    (tmp_path / "policy.yaml").write_text("schema_version: 1\nmax_num_seqs: 64\n")
    write_verdict_of = {**VERDICT, "policy_sha256": policy_digest(
        load_scenario(tmp_path / "scenario.yaml").file.policy)}  # fmt: skip
    (tmp_path / "policy.validation.json").write_text(json.dumps(write_verdict_of))
    text = export(tmp_path, "vllm")["vllm.yaml"]
    assert "max-num-seqs: 64" in text
    assert "validated on NVIDIA H100" in text


def test_an_unjudged_search_names_both_files(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(json.dumps(BASE))
    (tmp_path / "policy.yaml").write_text("schema_version: 1\n")
    text = " ".join(export(tmp_path, "vllm")["vllm.yaml"].replace("\n#", " ").split())
    command = f"validate {tmp_path / 'policy.yaml'} --scenario {tmp_path / 'scenario.yaml'}"
    assert command in text


def test_a_folder_without_a_scenario_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no scenario\.yaml"):
        export(tmp_path, "vllm")


def test_an_unknown_target_suggests_one(scenario_file: Path) -> None:
    with pytest.raises(InputError, match="unknown target 'vlm'; did you mean 'vllm'"):
        export(scenario_file, "vlm")


def test_comments_hold_whatever_a_scenario_says() -> None:
    text = comment(["one\nmodel: evil", "- two " + "word " * 60, "", "three"])
    assert all(line.startswith("#") for line in text.splitlines())
    assert max(map(len, text.splitlines())) <= 100


def test_comments_hold_no_character_that_readers_refuse() -> None:
    text = comment(["red \x1b[31m", "- \x00\x7f\ud800\x85\u202e", "  naïve 模型"])
    assert yaml.safe_load(text + "a: 1\n") == {"a": 1}
    assert "naïve 模型" in text


def test_pools_whose_files_would_be_one_are_refused(tmp_path: Path) -> None:
    cluster = {"pools": [{"name": "a b"}, {"name": "A-b"}]}
    with pytest.raises(InputError, match="pools 'a b' and 'A-b' would both be 'a-b'"):
        export("chat-h100", "kubernetes", {"workload.num_requests": 5, "cluster": cluster})


def test_a_policy_of_another_engine_says_whose_scheduler_was_simulated(scenario_file: Path) -> None:
    write_verdict(scenario_file)
    text = " ".join(export(scenario_file, "sglang", {"engine": {"name": "sglang"}})["sglang.yaml"]
                    .replace("\n#", " ").split())  # fmt: skip
    assert "The policy was written or found for vLLM." in text
    assert "The forecast here is of SGLang's scheduler" in text
    assert "validated on NVIDIA" not in text, "the verdict is of vLLM's steps"
    assert "not validated on hardware" in text
    assert "written or found for" not in export(scenario_file, "vllm")["vllm.yaml"]
