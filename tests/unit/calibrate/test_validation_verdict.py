"""From a scenario to a stored verdict on hardware that answers what it is told, and back."""

import json

import numpy as np
import pytest
import yaml

from calibrate.validate_command import _load
from calibrate.validation.hardware import Machine, Trial, run_trials
from calibrate.validation.predict import OneGpu, Predictor
from calibrate.validation.shapes import rank_shapes, shrunk, shrunk_batch
from calibrate.validation.validate import Asked, validate_scenario
from hwmodels.ops import Collective
from twin.engine.engines import base_cost_model
from twin.errors import InputError
from twin.llm.lowering import attention_ops, body_ops, head_ops
from twin.load import load_policy, scenario_from
from twin.step import BatchShape
from twin.validation import (
    content_digest,
    policy_digest,
    read_verdict,
    verdict_path,
    write_verdict,
)

DATA = {
    "schema_version": 1,
    "name": "small",
    "llm": "llama-3.1-8b",
    "gpu": "h100_sxm",
    "workload": {
        "kind": "synthetic",
        "arrivals": {"kind": "poisson", "rate": 8},
        "num_requests": 30,
        "prompt_tokens": {"kind": "uniform", "low": 50, "high": 2000},
        "output_tokens": 30,
    },
}


class Told:
    """Hardware whose every step takes `factor` times what is predicted."""

    machine = Machine("a GPU", "570.1", {"torch": "2.11"})

    def __init__(self, factor):
        self.factor, self.trials, self.shapes = factor, [], None

    def prepare(self, shapes, batches, seed):
        self.shapes = shapes

    def seconds(self, trial):
        self.trials.append(trial)
        return np.full(20, self.factor * trial.predicted_s)


def verdict_of(factor=1.0, dry_run=False, hardware=None, **changes):
    asked = Asked(steps=16, seed=1, deadline_s=1e9, dry_run=dry_run)
    told = hardware or Told(factor)
    return validate_scenario(scenario_from({**DATA, **changes}), lambda _: told, asked)


def test_a_gpu_that_agrees_validates_the_policy():
    verdict = verdict_of(1 / 1.02)
    assert verdict.verdict == "validated"
    assert verdict.reasons == ()
    assert verdict.overall.bias_pct == pytest.approx(2)
    assert verdict.gpu == "a GPU"
    assert sum(step.weight for step in verdict.steps) == pytest.approx(1)
    assert verdict.durations.startswith("Step times: kernels measured under vllm")


def test_a_gpu_that_does_not_says_why():
    verdict = verdict_of(1.2)
    assert verdict.verdict == "not validated"
    assert any("of GPU time) is off by 16.7 %" in reason for reason in verdict.reasons)


def test_a_dry_run_validates_nothing():
    verdict = verdict_of(1.0, dry_run=True)
    assert verdict.verdict == "pretended"
    assert not verdict.holds_for(scenario_from(DATA).file.policy)


def test_recording_of_the_scenario_does_not_matter():
    full, sampled = verdict_of(), verdict_of(recording="none")
    assert [s.number for s in full.steps] == [s.number for s in sampled.steps]


def test_steps_that_no_time_is_left_for_are_told():
    now = iter(range(10**6))
    told = Told(1.0)
    asked = Asked(steps=16, seed=1, deadline_s=20.0, dry_run=False)
    verdict = validate_scenario(
        scenario_from(DATA), lambda _: told, asked, lambda: float(next(now))
    )
    assert 0 < len(verdict.steps) < 16
    assert verdict.steps_dropped == 16 - len(verdict.steps)
    assert sum(step.weight for step in verdict.steps) == pytest.approx(1)


def test_the_first_step_runs_however_late_it_is():
    told = Told(1.0)
    trial = Trial(None, None, 1.0)
    assert len(run_trials(told, [trial, trial], deadline_s=-1.0, clock=lambda: 0.0)) == 1


def test_a_prediction_is_the_lowering_under_the_cost_model():
    scenario = scenario_from({**DATA, "parallelism": {"tp": 2}})
    model = base_cost_model(scenario)
    shape = BatchShape(((700, 900),), 3, 3000, 1200, 4)
    ops = [
        *body_ops(scenario.arch, scenario.precision, 2, shape.num_tokens),
        *attention_ops(scenario.arch, scenario.precision, 2, shape),
        *head_ops(scenario.arch, 2, shape.sampled_seqs),
    ]
    alone = sum(model.cost(op).seconds for op in ops if not isinstance(op, Collective))
    assert any(isinstance(op, Collective) for op in ops)
    assert Predictor(scenario).seconds(shape) == pytest.approx(alone, rel=0.02)
    assert OneGpu(model).cost(Collective("all_reduce", 1e9, 2)).seconds == 0


def test_graphs_are_those_of_the_engine():
    predictor = Predictor(scenario_from(DATA))
    assert predictor.captured_size(BatchShape((), 3, 300, 100, 3)) == 4
    assert predictor.captured_size(BatchShape(((100, 100),), 3, 300, 100, 3)) == 104
    assert predictor.captured_size(BatchShape(((2000, 2000),), 3, 300, 100, 3)) is None
    eager = Predictor(scenario_from({**DATA, "policy": {"enforce_eager": True}}))
    assert eager.captured_size(BatchShape((), 3, 300, 100, 3)) is None


def test_eight_bit_caches_and_ranks_are_told():
    verdict = verdict_of(policy={"kv_cache_dtype": "fp8"}, parallelism={"tp": 2})
    assert any("16-bit copy" in phrase for phrase in verdict.left_out)
    assert any("collectives between the 2 ranks" in phrase for phrase in verdict.left_out)


def test_shapes_are_those_of_one_rank():
    shapes = rank_shapes(scenario_from({**DATA, "parallelism": {"tp": 2}}))
    assert (shapes.heads, shapes.kv_heads, shapes.intermediate) == (16, 4, 7168)
    assert (shapes.qkv_columns, shapes.vocab) == (24 * 128, 64128)
    assert shapes.layer_bytes == 2 * 4096 * (24 * 128 + 16 * 128 + 3 * 7168)
    assert shapes.kv_block_bytes == 16 * 2 * 4 * 128 * 2


def test_small_steps_are_of_the_same_kind():
    told = Told(1.0)
    verdict_of(hardware=told)
    for trial in told.trials:
        small = shrunk_batch(trial.batch)
        assert bool(small.decodes) == bool(trial.batch.decodes)
        assert bool(small.chunks) == bool(trial.batch.chunks)
        assert small.tokens <= 8
        assert all(0 < query <= kv for query, kv in small.chunks)
    assert shrunk(told.shapes).kv_dtype == told.shapes.kv_dtype


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"llm": "qwen3-30b-a3b"}, "networks with experts cannot be run"),
        ({"llm": "deepseek-v3", "gpu": "h200_sxm", "parallelism": {"tp": 8}}, "cannot be run"),
        ({"parallelism": {"pp": 2}}, "pipeline stages cannot be run"),
        ({"policy": {"block_size": 24}}, "KV blocks of 24 tokens"),
        ({"policy": {"quantization": "int8"}}, "int8 weights, multiplied in int8"),
        (
            {"gpu": "a100_sxm", "policy": {"quantization": "fp8"}},
            "fp8 weights, multiplied in bf16, cannot be run",
        ),
        ({"cluster": {"pools": [{}, {}]}}, "replicas of several pools"),
        ({"engine": {"name": "sglang"}}, "KV blocks of 1 tokens"),
    ],
)
def test_what_the_kernels_cannot_run_is_refused_in_one_line(changes, said):
    with pytest.raises(InputError, match="cannot be run on the GPU here") as caught:
        verdict_of(**changes)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "prod.yaml"
    path.write_text("schema_version: 1\nmax_num_seqs: 64\n")
    return path


def stored(policy, dry_run=False):
    verdict = verdict_of(
        dry_run=dry_run, policy=load_policy(policy).model_dump(exclude_none=True, mode="json")
    )
    write_verdict(verdict, verdict_path(policy, dry_run=dry_run))
    return verdict


def test_a_verdict_stands_beside_its_policy_and_is_read_again(policy):
    assert read_verdict(policy) is None
    verdict = stored(policy)
    assert verdict_path(policy) == policy.with_name("prod.validation.json")
    assert read_verdict(policy) == verdict
    assert verdict.holds_for(load_policy(policy))


def test_a_policy_that_is_only_spelled_anew_keeps_its_verdict(policy):
    verdict = stored(policy)
    policy.write_text("# a comment\nmax_num_seqs: 64\nschema_version: 1\nblock_size: 16\n")
    assert read_verdict(policy) == verdict


def test_a_policy_that_changed_has_no_verdict(policy):
    stored(policy)
    policy.write_text("schema_version: 1\nmax_num_seqs: 65\n")
    assert read_verdict(policy) is None


def test_a_pretended_verdict_never_takes_the_place_of_a_real_one(policy):
    stored(policy, dry_run=True)
    assert verdict_path(policy, dry_run=True).name == "prod.validation-dry-run.json"
    assert read_verdict(policy) is None
    real = stored(policy)
    stored(policy, dry_run=True)
    assert read_verdict(policy) == real


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.update(schema_version=2), "is not a verdict of this version"),
        (lambda data: data.pop("overall"), "'overall' is missing"),
        (lambda data: data.update(colour="red"), "unknown key 'colour'"),
    ],
)
def test_a_damaged_verdict_is_refused_in_one_line(policy, change, said):
    data = stored(policy).model_dump(mode="json")
    change(data)
    verdict_path(policy).write_text(json.dumps(data))
    with pytest.raises(InputError, match=r"prod\.validation") as caught:
        read_verdict(policy)
    assert said in str(caught.value)
    verdict_path(policy).write_text("{")
    with pytest.raises(InputError, match="is not valid JSON"):
        read_verdict(policy)


def test_a_scenario_may_stand_for_its_policy(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump({**DATA, "policy": {"max_num_seqs": 32}}))
    scenario, beside = _load(str(path), None, {})
    assert verdict_path(beside) == tmp_path / "s.validation.json"
    write_verdict(verdict_of(policy={"max_num_seqs": 32}), verdict_path(beside))
    assert read_verdict(path) is not None
    assert scenario.file.policy.max_num_seqs == 32


def test_a_policy_needs_its_scenario_and_a_scenario_none(policy, tmp_path):
    with pytest.raises(InputError, match="is a policy; name its --scenario"):
        _load(str(policy), None, {})
    with pytest.raises(InputError, match="is a scenario itself"):
        _load("chat-h100", "chat-h100", {})
    scenario, beside = _load(str(policy), "chat-h100", {})
    assert scenario.file.policy == load_policy(policy)
    assert verdict_path(beside) == tmp_path / "prod.validation.json"
    assert "built-in" in _load("chat-h100", None, {})[1]  # nothing is stored beside an example


def test_keys_that_are_set_count_in_the_digests(policy):
    plain, _ = _load(str(policy), "chat-h100", {})
    longer, beside = _load(str(policy), "chat-h100", {"workload.num_requests": 700})
    assert beside == policy
    assert len(longer.workload.source(np.random.SeedSequence(0), 8192).start()) == 700
    assert content_digest(longer.as_dict()) != content_digest(plain.as_dict())
    changed, why = _load(str(policy), "chat-h100", {"policy.max_num_seqs": 3})
    assert changed.file.policy.max_num_seqs == 3
    assert why == f"--set changed what {policy} says"
    with pytest.raises(InputError, match="leave it out"):
        _load(str(policy), "chat-h100", {"policy": "other.yaml"})


def test_a_missing_policy_is_called_one(tmp_path):
    with pytest.raises(InputError, match="no such policy file"):
        _load(str(tmp_path / "none.yaml"), "chat-h100", {})


def test_the_gpu_is_looked_for_before_anything_is_simulated(monkeypatch):
    def no_gpu(_):
        raise InputError("no GPU")

    monkeypatch.setattr("calibrate.validation.validate.simulate", lambda _: pytest.fail("too late"))
    asked = Asked(steps=16, seed=1, deadline_s=1e9, dry_run=False)
    with pytest.raises(InputError, match="no GPU"):
        validate_scenario(scenario_from(DATA), no_gpu, asked)


def test_digests_tell_content_apart():
    one, other = scenario_from(DATA), scenario_from({**DATA, "seed": 1})
    assert content_digest(one.as_dict()) != content_digest(other.as_dict())
    assert policy_digest(one.file.policy) == policy_digest(other.file.policy)
    verdict = verdict_of()
    assert verdict.policy_sha256 == policy_digest(one.file.policy)
    assert verdict.scenario_sha256 == content_digest(one.as_dict())
    assert verdict.profile_sha256 is None
