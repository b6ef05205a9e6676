"""What a forecast for TensorRT-LLM says about its scheduler."""

import pytest
import yaml

from twin.engine import simulate
from twin.load import scenario_from
from twin.load.examples import FOLDER
from twin.load.trtllm_notes import UNHELD

CHAT = yaml.safe_load((FOLDER / "chat-h100.yaml").read_text())
NO_EVICT = "GUARANTEED_NO_EVICT reserves KV"


def scenario(version="1.3.0", *, engine="trtllm", workload=None, **policy):
    """Return chat on TensorRT-LLM: a request of its whole context needs 4,096 blocks."""
    told = {"num_gpu_blocks": 13_625, **policy}
    data = {**CHAT, "engine": {"name": engine, "version": version}, "policy": told}
    return scenario_from({**data, "workload": {**CHAT["workload"], **(workload or {})}})


def reserved(**told):
    """Return the notes on reserved answers."""
    return [note for note in scenario(**told).notes if "reserves KV" in note]


def test_every_forecast_says_that_no_recording_holds_the_scheduler():
    assert UNHELD in scenario().notes
    assert UNHELD in scenario(trtllm={"capacity_scheduler_policy": "MAX_UTILIZATION"}).notes
    assert UNHELD not in scenario("0.33.0", engine="vllm").notes


def test_answers_that_nobody_limits_reserve_the_whole_context():
    (note,) = reserved()
    assert "reserves max_model_len, 131,072 tokens: 4,096 of 13,625 blocks, so about 3 run" in note
    for remedy in ("policy.max_model_len", "MAX_UTILIZATION", "max_tokens (finish: length)"):
        assert remedy in note


def test_as_many_run_at_once_as_the_note_says():
    few = scenario(workload={"num_requests": 60}, num_gpu_blocks=5 * 4096 + 1)
    assert any("about 5 run at once" in note for note in few.notes)
    assert simulate(few).steps.running.max() == 5


@pytest.mark.parametrize(
    "told",
    [
        {"workload": {"finish": "length"}},
        {"trtllm": {"capacity_scheduler_policy": "MAX_UTILIZATION"}},
        {"max_num_seqs": 3},
    ],
)
def test_nothing_is_said_where_reservations_limit_nothing(told):
    assert not reserved(**told)


def test_a_trace_says_itself_how_its_answers_end(tmp_path):
    trace = tmp_path / "azure.csv"
    trace.write_text(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
    )

    def told(**finish):
        data = {**CHAT, "engine": {"name": "trtllm"}}
        data["workload"] = {"kind": "trace", "path": str(trace), **finish}
        return any(NO_EVICT in note for note in scenario_from(data).notes)

    assert told()
    assert not told(finish="length")


def test_a_context_larger_than_the_memory_names_the_one_that_fits():
    (note,) = reserved(num_gpu_blocks=1000)
    assert "none is served here" in note
    assert "set policy.max_model_len to at most 32,000" in note
    assert simulate(
        scenario(num_gpu_blocks=1000, workload={"num_requests": 5})
    ).requests.outcome.all()
    fits = scenario(num_gpu_blocks=1000, max_model_len=32_000, workload={"num_requests": 5})
    assert not simulate(fits).requests.outcome.any()


def test_the_block_of_padded_graphs_is_nobodys():
    (note,) = reserved(num_gpu_blocks=8192, trtllm={"cuda_graph_padding": True})
    assert "4,096 of 8,191 blocks, so about 1 run" in note


def test_newer_versions_may_choose_a_manager_that_is_not_simulated():
    def told(version, **policy):
        return any("manager V1 is simulated" in note for note in scenario(version, **policy).notes)

    assert told("1.4.0")
    assert not told("1.3.0")
    assert not told("1.4.0", trtllm={"capacity_scheduler_policy": "MAX_UTILIZATION"})
