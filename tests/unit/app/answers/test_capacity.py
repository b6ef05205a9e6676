import json
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

from app.answers.capacity.answer import capacity_answer
from app.answers.capacity.deployment import deployments, problem_but_for_room
from app.answers.capacity.lengths import lengths_of
from app.answers.setup import Setup
from tests.unit.app.pooled import POOLED
from twin.cli.app import app as cli
from twin.engine.run import simulate
from twin.errors import InputError
from twin.load.examples import example_names


def _setup(example="chat-h100", **changes):
    return Setup(example, None, {key.replace("__", "."): v for key, v in changes.items()})


@pytest.mark.parametrize(
    "setup",
    [
        *(_setup(name) for name in example_names()),
        _setup(engine__name="sglang", parallelism__tp=2),
        _setup(engine__name="trtllm", engine__version="1.4.0"),
        _setup(policy__kv_cache_dtype="fp8", policy__gpu_memory_utilization=0.8),
        _setup(policy__quantization="fp8", policy__block_size=32, policy__enforce_eager=True),
        _setup(policy__max_num_seqs=64, policy__max_num_batched_tokens=2048),
        _setup(llm="llama-3.3-70b", parallelism__tp=2),
    ],
)
def test_the_command_it_shows_gives_the_same_blocks(setup):
    found = capacity_answer(setup)
    one = next(iter(deployments(setup)[0].values()))
    words = shlex.split(found.command)
    assert words[0] == "twin"
    result = CliRunner().invoke(cli, [*words[1:], "--json", "-"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    own = one.capacity()
    assert told["kv_blocks"] == own.kv_blocks
    assert told["block_size"] == own.block_size
    assert {row["tp"]: row["kv_blocks"] for row in told["by_tp"]} == {
        tp: each.kv_blocks for tp, each in one.by_tp().items()
    }


@pytest.mark.parametrize("name", example_names())
def test_the_budget_is_the_one_that_is_simulated(name):
    setup = _setup(name)
    one = deployments(setup)[0][""]
    scenario = setup.scenario()
    assert one.capacity() == scenario.capacity
    assert one.policy() == scenario.policy
    assert one.held(one.capacity()) == scenario.num_gpu_blocks - 1


def test_what_fits_says_how_many_requests_at_once():
    found = capacity_answer(_setup())
    assert found.fits
    own = deployments(_setup())[0][""].capacity()
    requests = (own.kv_blocks - 1) // 512
    assert found.verdict == (
        f"Fits on 1×H100 with {own.kv_bytes / 2**30:.1f} GiB for KV: {requests} requests at 8k "
        "tokens."
    )
    assert found.budget.spec
    assert found.requests.spec


def test_what_does_not_fit_says_by_how_much_and_what_would():
    found = capacity_answer(_setup(llm="llama-3.3-70b", parallelism__tp=2))
    assert not found.fits
    assert found.verdict.startswith("Does not fit on 2×H100: ")
    assert found.verdict.endswith("tokens; the smallest TP that fits is 4.")
    one = deployments(_setup(llm="llama-3.3-70b", parallelism__tp=2))[0][""]
    start = one.held(one.capacity()) * 16
    assert f"max_model_len up to {start:,} it would start" in " ".join(found.detail)
    fixed = _setup(llm="llama-3.3-70b", parallelism__tp=2, policy__max_model_len=start)
    fixed.scenario()
    assert found.budget.spec  # the chart is never hidden


def test_nothing_that_fits_is_said_so():
    found = capacity_answer(_setup(llm="llama-3.1-405b", gpu="l40s"))
    assert "no TP up to 8 fits" in found.verdict


def test_blocks_that_the_scenario_names_are_those_that_count():
    found = capacity_answer(_setup(policy__num_gpu_blocks=8193))
    assert "16 requests at 8k tokens" in found.verdict
    assert any("num_gpu_blocks to 8,193" in note for note in found.notes)


def test_pools_are_told_apart():
    setup = Setup("", POOLED)
    first, large = capacity_answer(setup), capacity_answer(setup, "large")
    assert first.pools == large.pools == ("small", "large")
    assert "1×L40S" in first.verdict
    assert "1×H200" in large.verdict
    assert capacity_answer(setup, "no such").verdict == first.verdict


def test_experts_spread_over_ranks_have_no_command_but_a_reason():
    found = capacity_answer(_setup(llm="qwen3-30b-a3b", parallelism__tp=2, parallelism__ep=2))
    assert found.command == ""
    assert any("knows no dp and no ep" in note for note in found.notes)


@pytest.mark.parametrize("name", ["chat-h100", "agentic-sessions-h100", "closed-loop-h100"])
def test_lengths_are_those_of_the_simulation(name):
    fewer = {"agentic-sessions-h100": "num_sessions"}.get(name, "num_requests")
    scenario = Setup(name, None, {f"workload.{fewer}": 40}).scenario()
    result = simulate(scenario, engine="fast")
    found = lengths_of(scenario.workload, scenario.file.seed, scenario.policy.max_model_len)
    assert sorted(found.prompt) == sorted(result.requests.prompt_tokens)
    assert sorted(found.output) == sorted(result.requests.output_tokens)
    # A cache that forgets nothing and knows every earlier request finds at least as much.
    blocks = found.shared // 16 * 16
    assert blocks.sum() >= np.maximum(0, result.requests.cached_tokens).sum()


def test_the_first_request_shares_nothing_and_a_session_all_it_said():
    scenario = _setup("agentic-sessions-h100").scenario()
    found = lengths_of(scenario.workload, 0, scenario.policy.max_model_len)
    assert found.shared[0] == 0
    assert (found.shared < found.prompt).all()
    assert found.shared.sum() / found.prompt.sum() > 0.5


def test_a_context_too_short_for_every_prompt_is_said():
    found = capacity_answer(_setup(policy__max_model_len=16))
    assert found.at_p99 is None
    assert any("lengths are not known" in sentence for sentence in found.detail)


def test_a_setup_that_does_not_fit_may_be_looked_at_and_a_wrong_one_not():
    assert problem_but_for_room(_setup()) == ""
    assert problem_but_for_room(_setup(llm="llama-3.3-70b")) == ""
    assert "tp" in problem_but_for_room(_setup(parallelism__tp=3))
    assert problem_but_for_room(_setup(policy__block_size=-1))


def test_a_tp_that_does_not_divide_is_refused():
    with pytest.raises(InputError, match="tp"):
        capacity_answer(_setup(parallelism__tp=3))
