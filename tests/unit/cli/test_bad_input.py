"""Bad input: one line naming file, row or key and the remedy, exit 2, nothing left behind."""

import gzip
import io
import json
import sys
from pathlib import Path

import pytest
import typer

from tests.unit.caching.traces import SESSIONS, written
from twin.cli.app import app
from twin.cli.running import run

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
ROW = "2023-11-16 18:15:46.6805900,374,44\n"


@pytest.fixture
def twin(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; return (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        code = run(app, list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def assert_one_line(outcome, *says):
    code, out, err = outcome
    assert code == 2, (code, out, err)
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    for text in says:
        assert text in err, err


def simulate(twin, *assignments):
    arguments = [part for assignment in assignments for part in ("--set", assignment)]
    outcome = twin("simulate", "chat-h100", *arguments, "--out", "out", "--json", "f.json")
    assert not Path("out").exists()
    assert not Path("f.json").exists()
    assert not [path for path in Path(".").iterdir() if path.name.startswith(".")]
    return outcome


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("policy.block_size=0", "policy.block_size: input should be greater than 0, not 0"),
        ("policy.blok_size=16", "did you mean 'block_size'?"),
        ("polcy.block_size=16", "did you mean 'policy'?"),
        ("cluster.replicas=0", "cluster.replicas"),
        ("parallelism.tp=0", "parallelism.tp"),
        ("parallelism.tp=3", "tp can be 1, 2, 4"),
        ("parallelism.pp=40", "pp can be 1 to 32"),
        ("gpu=h200_sxn", "did you mean 'h200_sxm'?"),
        ("llm=llama-3.1-8", "did you mean 'llama-3.1-8b'?"),
        ("llm=llama-3.1-405b", "does not fit on 1 x h100_sxm"),
        ("llm=nowhere/config.json", "nowhere/config.json"),
        ("engine.name=vlm", "'vllm'"),
        ("engine.version=newest", "not a version"),
        ("seed=-1", "seed"),
        ("seed=x", "seed"),
        ("slo.ttft_s=.nan", "slo.ttft_s"),
        ("slo.ttft_s=0", "slo.ttft_s"),
        ("horizon_s=-3", "horizon_s"),
        ("workload.arrivals.rate=1e300", "workload.arrivals.rate"),
        ("workload.arrivals.rate=.inf", "workload.arrivals.rate"),
        ("workload.num_requests=1000000000000", "workload.num_requests"),
        ("workload.kind=syntetic", "workload"),
        ("workload.prompt_tokens=-4", "workload.prompt_tokens"),
        ("policy.max_num_batched_tokens=8", "max_num_seqs"),
        ("policy.num_gpu_blocks=1", "give at least 2"),
        ("policy.num_gpu_blocks=500", "set policy.max_model_len to at most 7984"),
        ("schema_version=2", "schema_version: input should be 1, not 2"),
        ("policy=none.yaml", "none.yaml: no such policy file"),
        ("horizon_s=1e308", "horizon_s"),
        ("cluster.startup_s=1e308", "cluster.startup_s"),
        ("cluster.failures={scheduled: [{at_s: 0, replica: 0, down_s: 1e308}]}", "down_s"),
        ("cluster.failures={random: {mtbf_s: 1e-9, mttr_s: 0}}", "cluster.failures.random.mtbf_s"),
        ("cluster.failures={max_requeues: 100000}", "cluster.failures.max_requeues"),
        ("cluster.autoscaler={target: 1, max_replicas: 2, interval_s: 1e-6}", "interval_s"),
        ("cluster={pools: []}", "cluster.pools: the list is too short"),
        ("clients={retry: {kind: none, max_attempts: 3}}", "choose one of kind"),
    ],
)
def test_bad_keys_and_values(twin, assignment, says):
    extra = ["policy.max_num_seqs=16"] if "max_num_batched_tokens=8" in assignment else []
    assert_one_line(simulate(twin, assignment, *extra), says)


def test_the_compiled_engine_without_numba(twin, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    outcome = twin("simulate", "chat-h100", "--engine", "compiled")
    assert_one_line(outcome, "needs numba", "pip install numba")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.csv", None, "missing.csv"),
        ("empty.csv", b"", "empty.csv"),
        ("header.csv", HEADER.encode(), "header.csv"),
        ("nan.csv", (HEADER + ROW + ROW.replace("374", "nan")).encode(), "row"),
        ("negative.csv", (HEADER + ROW + ROW.replace("374", "-3")).encode(), "row"),
        ("zero.csv", (HEADER + ROW.replace("374", "0")).encode(), "row"),
        ("huge.csv", (HEADER + ROW.replace("374", "9" * 30)).encode(), "row"),
        ("unsorted.csv", (HEADER + ROW + ROW.replace("18:15", "17:15")).encode(), "sort"),
        ("columns.csv", b"a,b,c\n1,2,3\n", "columns.csv"),
        ("short.csv", (HEADER + "2023-11-16 18:15:46.6805900,374\n").encode(), "row"),
        ("binary.csv", bytes(range(256)) * 20, "binary.csv"),
        ("broken.jsonl", b'{"timestamp": 0, "input_length": 5, "outp', "broken.jsonl"),
        ("line.csv", (HEADER + "x" * 20_000_000).encode(), "line.csv"),
    ],
)
def test_bad_traces(twin, tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert_one_line(simulate(twin, f"workload.path={name}"), says)


def test_truncated_gzip(twin, tmp_path):
    whole = gzip.compress((HEADER + ROW * 2000).encode())
    (tmp_path / "t.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert_one_line(simulate(twin, "workload.path=t.csv.gz"), "t.csv.gz")


def test_one_line_of_200_megabytes(twin, tmp_path):
    with (tmp_path / "wide.jsonl").open("wb") as file:
        file.write(b'{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [')
        for _ in range(200):
            file.write(b"1," * (2**19))
    assert_one_line(simulate(twin, "workload.path=wide.jsonl"), "wide.jsonl")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("simulate", "none.yaml"), "no such scenario file"),
        (("simulate", "chat-h10"), "did you mean 'chat-h100'?"),
        (("simulate", "."), "is a folder"),
        (("simulate",), "scenario"),
        (("simulate", "chat-h100", "--sett", "a=1"), "--sett"),
        (("simulate", "chat-h100", "--set", "a"), "key=value"),
        (("simulate", "chat-h100", "--json", "no/such/f.json"), "folder does not exist"),
        (("simulate", "\x00"), "path"),
        (("nonsense",), "nonsense"),
        (("capacity", "--model", "llama", "--gpu", "h100_sxm"), "llama"),
        (("capacity", "--model", "llama-3.1-8b", "--gpu", "h100"), "did you mean"),
        (("capacity", "--model", "llama-3.1-8b", "--gpu", "h100_sxm", "--tp", "0"), "--tp"),
        (
            ("capacity", "--model", "llama-3.1-8b", "--gpu", "h100_sxm", "--kv-cache-dtype", "fp9"),
            "fp9",
        ),
        (
            ("capacity", "--model", "llama-3.1-8b", "--gpu", "h100_sxm", "--quantization", "fp9"),
            "fp9",
        ),
        (
            (
                "capacity",
                "--model",
                "llama-3.1-8b",
                "--gpu",
                "h100_sxm",
                "--gpu-memory-utilization",
                "nan",
            ),
            "gpu_memory_utilization",
        ),
        (
            ("capacity", "--model", "llama-3.1-8b", "--gpu", "h100_sxm", "--engine", "vlm"),
            "vlm",
        ),
        (("memory",), "--claims"),
        (("kv-dtype", "chat-h100", "--dtype", "fp9"), "unknown kv_cache_dtype 'fp9'"),
        (("kv-dtype", "chat-h100", "--dtype", "auto"), "is 16 bits"),
        (("kv-dtype", "chat-h100", "--set", "policy.kv_cache_dtype=fp8"), "use --dtype"),
        (("kv-dtype", "summarisation-a100", "--dtype", "fp8_per_token_head"), "8.9"),
        (
            (
                "kv-dtype",
                "chat-h100",
                "--set",
                "cluster={pools: [{replicas: 1, policy: {kv_cache_dtype: fp8}}]}",
            ),
            "a pool has a kv_cache_dtype of its own",
        ),
        (
            (
                "kv-dtype",
                "chat-h100",
                "--set",
                "policy.max_model_len=16",
                "--set",
                "workload.num_requests=3",
            ),
            "no request was served",
        ),
        (("memory", "chat-h10"), "did you mean 'chat-h100'?"),
        (("memory", "chat-h100", "--out", "kv.png"), ".html or .svg"),
        (("memory", "chat-h100", "--out", "no/kv.svg"), "folder does not exist"),
        (("memory", "--claims", "--out", "kv.svg"), "does not go with --out"),
        (("memory", "chat-h100", "--set", "kv_layout.pools=layers"), "kv_layout.pools"),
        (("cache", "none.jsonl"), "none.jsonl"),
        (("cache", "plain.jsonl"), "does not tell which prompts share a prefix"),
        (("cache", "blocks.jsonl", "--policies", "lru,lfo"), "did you mean 'lfu'?"),
        (("cache", "blocks.jsonl", "--capacities", "10,1GiB"), "name one with --llm"),
        (("cache", "blocks.jsonl", "--capacities", "10,"), "not a size in bytes"),
        (("cache", "blocks.jsonl", "--block-size", "4096"), "no prompt fills a block"),
        (("cache", "blocks.jsonl", "--llm", "llama-3.1-8"), "did you mean"),
        (("cache", "blocks.jsonl", "--kv-cache-dtype", "fp8"), "name one with --llm"),
        (("cache", "blocks.jsonl", "--llm", "llama-3.1-8b", "--kv-cache-dtype", "fp9"), "fp9"),
        (("cache", "blocks.jsonl", "--ttl", "0"), "give seconds above 0"),
        (("cache", "blocks.jsonl", "--csv", "a.csv", "--html", "a.csv"), "--html writes there too"),
        (("cache", "blocks.jsonl", "--svg", "blocks.jsonl"), "would replace the input"),
        (("conformance", "none.json"), "none.json"),
        (("compare", "none", "chat-h100"), "none"),
        (("scenario", "init", "s.yaml", "--example", "chat"), "--example"),
        (("scenario", "init", "no/dir/s.yaml"), "no/dir"),
    ],
)
def test_bad_commands(twin, arguments, says):
    written(Path(), SESSIONS, "blocks.jsonl")
    Path("plain.jsonl").write_text('{"timestamp": 0, "input_length": 9, "output_length": 1}\n')
    assert_one_line(twin(*arguments), says)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a result"),
        ('{"inputs": {}}', "no figures"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_bad_results_to_compare(twin, tmp_path, content, says):
    (tmp_path / "r.json").write_text(content)
    assert_one_line(twin("compare", "r.json", "r.json"), "r.json", says)


def test_scenario_init_does_not_overwrite(twin, tmp_path):
    (tmp_path / "s.yaml").write_text("mine")
    assert_one_line(twin("scenario", "init", "s.yaml"), "exists already", "--force")
    assert (tmp_path / "s.yaml").read_text() == "mine"


def test_a_conformance_file_that_is_something_else(twin, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps({"hello": 1}))
    assert_one_line(twin("conformance", "c.json"), "c.json")


def test_the_input_is_never_replaced(twin):
    assert twin("scenario", "init", "scenario.yaml")[0] == 0
    before = Path("scenario.yaml").read_text(encoding="utf-8")
    for output in (("--json", "scenario.yaml"), ("--out", ".")):
        assert_one_line(twin("simulate", "scenario.yaml", *output), "would replace the input")
    assert Path("scenario.yaml").read_text(encoding="utf-8") == before


@pytest.mark.parametrize("option", ["--json", "--out"])
def test_an_empty_output_name(twin, option):
    assert_one_line(twin("simulate", "chat-h100", option, ""), f"{option}: is empty")
    assert list(Path(".").iterdir()) == []


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("policy.num_gpu_blocks=1000000000", "policy.num_gpu_blocks: input should be less"),
        ("workload.output_tokens={kind: lognormal, mean: 1e-300, std: 1e7}", "times mean"),
        ('name="\\e[31m"', "unprintable character"),
        ('name="\\ud800"', "unprintable character"),
        ("parallelism.tp=3", "chat-h100, parallelism.tp: tp 3 does not divide"),
    ],
)
def test_values_beyond_reason(twin, assignment, says):
    assert_one_line(simulate(twin, assignment), says)


def test_a_network_of_countless_blocks(twin):
    sizes = ("hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size")
    config = {**dict.fromkeys(sizes, 1), "vocab_size": 10, "max_position_embeddings": 100}
    Path("tiny.json").write_text(json.dumps(config))
    assert_one_line(simulate(twin, "llm=./tiny.json"), "set policy.num_gpu_blocks")


def test_no_command_prints_the_help(twin):
    code, _, err = twin()
    assert code == 2
    assert err.startswith("Usage: ")
    assert err.count("\n") > 5


def test_closed_streams_and_narrow_alphabets(twin, monkeypatch):
    monkeypatch.setattr("sys.stdout", None)
    assert run(app, ["models"]) == 0
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", narrow)
    assert run(app, ["models"]) == 0
    monkeypatch.setenv("COLUMNS", "0")
    before = narrow.buffer.tell()
    assert run(app, ["models"]) == 0
    assert narrow.buffer.tell() > before


@pytest.mark.parametrize("number", ["NaN", "1e999", "9" * 400])
def test_a_result_with_a_number_beyond_floats(twin, number):
    Path("r.json").write_text('{"inputs": {}, "ttft_s": {"p50": ' + number + "}}")
    assert_one_line(twin("compare", "r.json", "r.json"), "r.json: is not valid JSON", "finite")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--max-num-seqs", "9" * 400), "--max-num-seqs"),
        (("--max-num-batched-tokens", "9" * 400), "--max-num-batched-tokens"),
        (("--json", "."), "is a folder; name a file"),
    ],
)
def test_capacity_beyond_reason(twin, options, says):
    arguments = ("capacity", "--model", "llama-3.1-8b", "--gpu", "h100_sxm")
    assert_one_line(twin(*arguments, *options), says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--model", "llama-9"), "--model: unknown model 'llama-9'"),
        (("--engine-version", "abc"), "--engine-version: engine version 'abc' is not a version"),
        (("--engine", "sglang", "--pp", "2"), "--pp: pp 2 is not simulated for sglang"),
        (
            ("--max-num-seqs", "4096", "--max-num-batched-tokens", "100"),
            "max_num_batched_tokens 100 is below max_num_seqs 4096",
        ),
        (
            ("--model", "llama-3.1-8b-fp8", "--quantization", "none"),
            "quantization 'none' asked of llama-3.1-8b-fp8",
        ),
    ],
)
def test_capacity_refuses_what_simulate_refuses(twin, options, says):
    model = () if "--model" in options else ("--model", "llama-3.1-8b")
    assert_one_line(twin("capacity", *model, "--gpu", "h100_sxm", *options), says)


@pytest.mark.parametrize(
    ("assignments", "says"),
    [
        (("llm=llama-3.1-8b-fp8", "policy.quantization=none"), "quantization 'none' asked of"),
        (
            ("engine.name=sglang", "engine.version=0.33.0"),
            "engine.version: 0.33.0 is a version of vLLM, not of sglang",
        ),
        (
            ("engine.name=trtllm", "engine.version=1.0.0", "policy.scheduling_policy=priority"),
            "policy.scheduling_policy: TensorRT-LLM has no scheduling_policy priority before 1.4.0",
        ),
    ],
)
def test_what_a_network_or_an_engine_cannot_have(twin, assignments, says):
    assert_one_line(simulate(twin, *assignments), says)


def test_a_folder_of_recordings(twin, tmp_path):
    assert_one_line(twin("conformance", str(tmp_path)), "is a folder; name the recordings in it")


def test_the_trace_is_never_replaced(twin, tmp_path):
    trace = tmp_path / "t.csv"
    trace.write_text(HEADER + ROW)
    asked = ("simulate", "chat-h100", "--set", "workload.path=t.csv", "--json", "t.csv")
    assert_one_line(twin(*asked), "would replace the input")
    assert trace.read_text() == HEADER + ROW


def test_one_place_for_two_outputs(twin):
    assert_one_line(
        twin("simulate", "chat-h100", "--out", "x", "--json", "./x"), "--out writes there too"
    )


def test_a_version_of_countless_digits_names_none(twin):
    assert_one_line(simulate(twin, f'engine.version="{"9" * 5000}.0"'), "is not a version")


@pytest.mark.parametrize(
    ("assignment", "says"),
    [
        ("seed=true", "seed: give a number"),
        ("policy.max_num_seqs=yes", "max_num_seqs: give a number"),
        ("policy.enable_prefix_caching=1", "enable_prefix_caching: give true or false"),
        ("policy.enable_prefix_caching='yes'", "enable_prefix_caching: give true or false"),
        ("slo.ttft_s=on", "ttft_s: give a number"),
        ("workload.num_requests=true", "num_requests: give a number"),
        ("workload.arrivals.rate=true", "rate: give a number"),
        ("cluster.replicas=1025", "cluster.replicas"),
    ],
)
def test_flags_are_no_numbers(twin, assignment, says):
    assert_one_line(simulate(twin, assignment), says)


def test_ctrl_c_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    interrupted = typer.Typer()

    @interrupted.command()
    def work() -> None:
        raise KeyboardInterrupt

    assert run(interrupted, []) == 130
    assert capsys.readouterr().err == "error: stopped\n"


@pytest.mark.parametrize("name", ["study.journal", "summary.json"])
def test_figures_do_not_replace_a_file_of_the_search(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    command = ["search", "chat-h100", "--out", str(tmp_path), "--json", str(tmp_path / name)]
    assert run(app, [*command, "--trials", "2", "--set", "workload.num_requests=9", "-q"]) == 2
    assert (tmp_path / name).read_text() == ""
