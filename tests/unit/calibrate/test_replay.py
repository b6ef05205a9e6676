import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from calibrate.cli import app
from calibrate.replay.replay import error_pct, queued_s, replay, request_error_pct, scenario_of
from calibrate.replay.report import as_json, print_replay
from calibrate.replay.run_folder import Latencies, latencies, read_run
from twin.engine.layers import LAYER_HOST
from twin.errors import InputError

LLAMA, QWEN = "rtx4090-llama-3.1-8b", "rtxpro6000-qwen3-30b-a3b-dp2ep2"


@pytest.fixture(scope="module")
def runs(data_dir):
    return {name: replay(read_run(data_dir / "vllm_runs" / name)) for name in (LLAMA, QWEN)}


def test_latencies_count_from_queueing():
    found = latencies(
        np.array([1.0, 2.0]), np.array([1.5, 4.0]), np.array([3.5, 4.0]), np.array([5, 1])
    )
    assert found.ttft.tolist() == [0.5, 2.0]
    assert found.tpot.tolist() == [0.5, 0.0]
    assert found.e2e.tolist() == [2.5, 2.0]


def test_errors_are_signed_and_a_request_error_is_absolute():
    one = Latencies(np.array([1.0, 3.0]), np.array([1.0, 0.0]), np.array([2.0, 4.0]))
    two = Latencies(np.array([2.0, 2.0]), np.array([2.0, 0.0]), np.array([2.0, 5.0]))
    errors = error_pct(one, two)
    assert errors["ttft"]["mean"] == 0.0
    assert errors["tpot"]["mean"] == -50.0
    assert errors["e2e"]["p50"] == pytest.approx(100 * (3 / 3.5 - 1))
    assert request_error_pct(one, two) == pytest.approx({"ttft": 50, "tpot": 50, "e2e": 10})


def test_a_request_is_queued_at_the_schedule_call_after_it_arrives():
    api_s = LAYER_HOST.api_s
    result = SimpleNamespace(
        requests=SimpleNamespace(
            arrival_s=np.array([0.0, 1.0, 1.0, 2.5]) - api_s,
            # The last one woke an idle rank whose dummy passes are no recorded steps.
            scheduled_s=np.array([0.0, 3.0, 1.5, 2.5]),
            replica=np.array([0, 0, 1, 1]),
        ),
        steps=SimpleNamespace(
            scheduled_s=np.array([0.0, 0.5, 1.25, 1.5, 3.0, 4.0]),
            replica=np.array([0, 1, 0, 1, 0, 1]),
        ),
    )
    assert queued_s(result).tolist() == [0.0, 1.25, 1.5, 2.5]


def test_flags_become_a_scenario(data_dir):
    file = scenario_of(read_run(data_dir / "vllm_runs" / QWEN)).file
    assert (file.parallelism.dp, file.parallelism.ep, file.parallelism.tp) == (2, 2, 1)
    assert (file.policy.max_num_seqs, file.policy.max_num_batched_tokens) == (128, 2048)
    assert (file.gpu, file.llm, file.engine.version) == ("rtx_pro_6000", "qwen3-30b-a3b", "0.19.0")


def test_the_dense_run_is_within_one_per_cent(runs):
    data = as_json(runs[LLAMA])
    assert data["kv_blocks_used"] == 2588
    for key, limit in (("error_pct", 1.0), ("error_pct_computed_blocks", 4.0)):
        errors = data[key]
        for metric, statistics in (
            ("ttft", ("mean", "p50")), ("tpot", ("mean", "p50", "p99")), ("e2e", ("mean",)),
        ):  # fmt: skip
            for statistic in statistics:
                assert abs(errors[metric][statistic]) < limit, (key, metric, statistic)


def test_the_run_of_ranks_that_share_experts(runs):
    data = as_json(runs[QWEN])
    assert data["kv_blocks"]["logged"] is None
    assert "error_pct_computed_blocks" not in data
    errors = data["error_pct"]
    for metric in ("tpot", "e2e"):
        for statistic in ("mean", "p50"):
            assert abs(errors[metric][statistic]) < 1.5, (metric, statistic)
    assert abs(errors["ttft"]["mean"]) < 5
    assert abs(errors["ttft"]["p50"]) < 10


def test_the_command_prints_and_writes(data_dir, tmp_path):
    out = tmp_path / "replay.json"
    folder = data_dir / "vllm_runs" / LLAMA
    done = CliRunner().invoke(app, ["replay", str(folder), "--json", str(out)])
    assert done.exit_code == 0, done.output
    assert "logged 2588" in done.output
    errors = json.loads(out.read_text())["error_pct"]
    assert set(errors) == {"ttft", "tpot", "e2e"}
    assert set(errors["ttft"]) == {"mean", "p50", "p90", "p95", "p99"}


@pytest.fixture
def small_run(data_dir, tmp_path):
    """A copy of a run whose files can be damaged."""
    source = data_dir / "vllm_runs" / LLAMA
    for name in ("meta.json", "requests.jsonl", "trace.jsonl"):
        (tmp_path / name).write_bytes((source / name).read_bytes())
    (tmp_path / "layer_profile").symlink_to(source / "layer_profile")
    return tmp_path


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such folder"):
        read_run(tmp_path / "nothing")
    with pytest.raises(InputError, match=r"meta\.json"):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("meta.json", "{", "is not JSON"),
        ("meta.json", "[]", "is not an object"),
        ("meta.json", "{}", "has no engine_kwargs"),
        ("meta.json", '{"engine_kwargs": {"tensor_parallel_size": "two"}}', "is 'two'"),
        ("requests.jsonl", '{"output_toks": 3, "queued_ts": null}\n', "row 1: queued_ts is None"),
    ],
)
def test_damage_is_named(small_run, name, text, message):
    (small_run / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_run(small_run)


def change(path, number, **values):
    """Change a record of a JSON-lines file."""
    lines = path.read_text().splitlines()
    lines[number] = json.dumps({**json.loads(lines[number]), **values})
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"first_token_ts": 27530.0}, r"row 1: first_token_ts 27530\.0 is before queued_ts"),
        ({"last_token_ts": 27537.0}, r"row 1: last_token_ts 27537\.0 is before first_token_ts"),
        ({"request_id": "bench-1"}, "row 2: request 1 stands in row 1 already"),
        ({"request_id": "bench-300"}, "row 1: request 300 is none of the 300 recorded"),
        ({"output_toks": 0}, "row 1: output_toks is 0"),
        ({"output_toks": 5}, "request 0 has 531 output tokens in the trace, 5 recorded"),
    ],
)
def test_impossible_records(small_run, values, message):
    change(small_run / "requests.jsonl", 0, **values)
    with pytest.raises(InputError, match=message):
        scenario_of(read_run(small_run))


def test_a_missing_trace_is_of_the_run(small_run):
    (small_run / "trace.jsonl").unlink()
    with pytest.raises(InputError, match=r"trace\.jsonl: no such file; give a whole run"):
        read_run(small_run)


def with_meta(folder, section, **values):
    meta = json.loads((folder / "meta.json").read_text())
    meta[section].update(values)
    (folder / "meta.json").write_text(json.dumps(meta))
    return read_run(folder)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (-3, "num_gpu_blocks is -3"),
        ("many", "num_gpu_blocks is 'many'"),
        (3, "num_gpu_blocks is 3, but one request of max_model_len 32768 needs 2049"),
    ],
)
def test_logged_blocks_that_cannot_be(small_run, blocks, message):
    with pytest.raises(InputError, match=message):
        replay(with_meta(small_run, "kv_cache", num_gpu_blocks=blocks))


def test_pipeline_stages_are_those_of_the_run(small_run):
    run = with_meta(small_run, "engine_kwargs", pipeline_parallel_size=2)
    assert scenario_of(run).file.parallelism.pp == 2


def test_equal_counts_are_simulated_and_shown_once(small_run, runs):
    computed = runs[LLAMA].computed.blocks
    found = replay(with_meta(small_run, "kv_cache", num_gpu_blocks=computed))
    assert found.logged is found.computed
    console = Console(record=True, width=120, file=io.StringIO())
    print_replay(found, console)
    text = console.export_text()
    assert f"with the {computed} logged blocks, as many as computed" in text
    assert text.count("TTFT measured") == 1


def test_a_trace_of_another_run_is_refused(small_run):
    lines = (small_run / "trace.jsonl").read_text().splitlines()
    (small_run / "trace.jsonl").write_text("\n".join(lines[:20]) + "\n")
    with pytest.raises(InputError, match="20 requests sent, 300 recorded"):
        replay(read_run(small_run))


def test_requests_are_matched_by_their_number(small_run):
    before = read_run(small_run).measured.ttft
    lines = (small_run / "requests.jsonl").read_text().splitlines()
    (small_run / "requests.jsonl").write_text("\n".join(reversed(lines)) + "\n")
    assert read_run(small_run).measured.ttft.tolist() == before.tolist()
