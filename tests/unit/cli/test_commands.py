"""Commands on good input: what they print, write and return."""

import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.unit.caching.traces import SESSIONS, written
from twin.cli.app import app
from twin.cli.running import run
from twin.load.examples import FOLDER, example_names
from twin.paging.eviction import EVICTION

SMALL = ("--set", "workload.num_requests=40")
LATENCIES = ("ttft_s", "tpot_s", "itl_s", "e2e_s")


@pytest.fixture
def twin(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder that must succeed; return (stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0):
        assert run(app, list(arguments)) == code
        captured = capsys.readouterr()
        return captured.out, captured.err

    return call


def test_simulate_json_holds_the_promised_figures(twin):
    out, _ = twin("simulate", "chat-h100", *SMALL, "--json", "-")
    data = json.loads(out)
    for key in LATENCIES:
        assert list(data[key]) == ["mean", "p50", "p90", "p95", "p99"]
        assert data[key]["p50"] <= data[key]["p90"] <= data[key]["p95"] <= data[key]["p99"]
    assert data["requests"] == data["finished"] == 40
    assert data["kv_blocks"] > 1000
    assert data["inputs"]["policy"]["num_gpu_blocks"] is None
    assert set(data["kv_cache_usage"]) == {"mean", "max"}
    for key in (
        "steps",
        "simulated_s",
        "wall_s",
        "requests_per_s",
        "output_tokens_per_s",
        "goodput_requests_per_s",
        "preemptions",
        "prefix_cache_hit_rate",
    ):
        assert data[key] >= 0


def test_simulate_is_reproducible_and_the_seed_matters(twin):
    def figures(*more):
        data = json.loads(twin("simulate", "chat-h100", *SMALL, *more, "--json", "-")[0])
        data.pop("wall_s")
        return json.dumps(data)

    assert figures() == figures()
    assert figures() != figures("--set", "seed=1")


def test_simulate_writes_every_file_and_its_scenario_runs_again(twin, tmp_path):
    out, _ = twin("simulate", "chat-h100", *SMALL, "--out", "run", "--json", "first.json")
    assert "Report: " in out
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {
        "summary.json",
        "requests.parquet",
        "steps.parquet",
        "report.html",
        "trace.json.gz",
        "metrics.prom",
        "scenario.yaml",
    }
    twin("simulate", "run/scenario.yaml", "--json", "again.json", "--quiet")
    first, again = (json.loads(Path(f"{n}.json").read_text()) for n in ("first", "again"))
    for key in LATENCIES:
        assert first[key] == again[key]


def test_a_policy_file_is_used_and_overridden(twin, tmp_path):
    (tmp_path / "p.yaml").write_text("schema_version: 1\nblock_size: 32\nmax_num_seqs: 7\n")
    arguments = (*SMALL, "--set", "policy=p.yaml", "--set", "policy.max_num_seqs=9")
    policy = json.loads(twin("simulate", "chat-h100", *arguments, "--json", "-")[0])["inputs"]
    assert policy["policy"]["block_size"] == 32
    assert policy["policy"]["max_num_seqs"] == 9


def test_policy_path_in_a_scenario_is_relative_to_it(twin, tmp_path):
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / "p.yaml").write_text("schema_version: 1\nblock_size: 64\n")
    data = yaml.safe_load((FOLDER / "chat-h100.yaml").read_text())
    data["policy"] = "p.yaml"
    data["workload"]["num_requests"] = 10
    (folder / "s.yaml").write_text(yaml.safe_dump(data))
    out, _ = twin("simulate", "sub/s.yaml", "--json", "-")
    assert json.loads(out)["block_size"] == 64


def test_compare_scenarios_policies_results_and_folders(twin, tmp_path):
    out, _ = twin(
        "compare", "chat-h100", *SMALL, "--set-b", "policy.kv_cache_dtype=fp8", "--json", "c.json"
    )
    assert "kv_cache_dtype" in out
    data = json.loads(Path("c.json").read_text())
    assert {"policy.kv_cache_dtype"} <= {change["key"] for change in data["inputs"]}
    blocks = next(f for f in data["figures"] if f["key"] == "kv_blocks")
    # FP8 halves the bytes of a block: twice as many, give or take the rounding down.
    assert blocks["b"] - 2 * blocks["a"] in (0, 1)

    for name, size in (("p", 16), ("q", 64)):
        (tmp_path / f"{name}.yaml").write_text(f"schema_version: 1\nblock_size: {size}\n")
    out, _ = twin("compare", "p.yaml", "q.yaml", "--json", "-")
    assert [c["key"] for c in json.loads(out)["inputs"]] == ["block_size"]
    out, _ = twin("compare", "p.yaml", "q.yaml", "--scenario", "chat-h100", *SMALL, "--json", "-")
    assert json.loads(out)["figures"]

    twin("simulate", "chat-h100", *SMALL, "--out", "run", "--json", "r.json", "--quiet")
    out, _ = twin("compare", "run", "r.json", "--json", "-")
    data = json.loads(out)
    assert all(f["delta"] in (0, None) for f in data["figures"])


def test_conformance_exits_1_on_a_difference_and_shows_it(twin, tmp_path):
    golden = Path(__file__).parents[2] / "golden" / "vllm_sync"
    recording = sorted(golden.glob("15_*.json.gz"))[0]
    out, _ = twin("conformance", str(recording))
    assert "37 of 37 steps identical" in out

    import gzip

    data = json.loads(gzip.decompress(recording.read_bytes()))
    data["steps"][20]["free_blocks_after_schedule"] += 1
    (tmp_path / "changed.json").write_text(json.dumps(data))
    out, _ = twin("conformance", "changed.json", code=1)
    assert "20 of 37 steps identical" in out
    assert "free_blocks_after_schedule" in out


def test_scenario_init_writes_a_starter_that_runs(twin):
    out, _ = twin("scenario", "init", "mine.yaml")
    assert "wrote mine.yaml" in out
    out, _ = twin("simulate", "mine.yaml", *SMALL)
    assert "TTFT" in out
    assert "#" in Path("mine.yaml").read_text()


def test_examples_fit_the_printed_schema(twin):
    schema = json.loads(twin("scenario", "schema")[0])
    jsonschema.Draft202012Validator.check_schema(schema)
    for name in example_names():
        jsonschema.validate(yaml.safe_load((FOLDER / f"{name}.yaml").read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema_version": 1, "llm": "x", "gpu": "y"}, schema)
    policy = json.loads(twin("scenario", "schema", "--policy")[0])
    assert "block_size" in policy["properties"]


def test_examples_are_listed_with_descriptions(twin):
    rows = json.loads(twin("scenario", "examples", "--json", "-")[0])
    assert [row["name"] for row in rows] == example_names()
    assert all(row["description"] for row in rows)


def test_catalogues(twin):
    models = json.loads(twin("models", "--json", "-")[0])
    assert {"llama-3.1-8b", "qwen3-30b-a3b", "codellama-34b"} <= {row["name"] for row in models}
    gpus = json.loads(twin("gpus", "--json", "-")[0])
    assert [row["name"] for row in gpus] == [
        "a100_sxm",
        "h100_sxm",
        "h200_sxm",
        "b200_sxm",
        "l40s",
        "rtx_4090",
        "rtx_pro_6000",
    ]


def test_capacity_json_and_the_simulation_agree(twin):
    out, _ = twin("capacity", "--model", "llama-3.1-8b", "--gpu", "h100_sxm", "--json", "-")
    data = json.loads(out)
    assert data["kv_tokens"] == 16 * data["kv_blocks"]
    assert data["kv_bytes_per_token_per_gpu"] == 131072
    spent = sum(
        data[line]
        for line in (
            "weights_bytes",
            "activation_peak_bytes",
            "non_torch_bytes",
            "cuda_graph_bytes",
            "kv_bytes",
        )
    )
    assert spent == pytest.approx(data["usable_bytes"], abs=8)
    simulated = json.loads(twin("simulate", "chat-h100", *SMALL, "--json", "-")[0])
    assert simulated["kv_blocks"] == data["kv_blocks"]


def test_capacity_says_at_which_tp_it_fits(twin):
    out, _ = twin("capacity", "--model", "llama-3.1-70b", "--gpu", "h100_sxm")
    assert "does not fit" in out
    assert "The smallest TP that fits is 4." in out


def test_importing_twin_is_light():
    code = (
        "import sys, twin, twin.engine, twin.load, twin.report.metrics, twin.cli;"
        "heavy = {'torch', 'streamlit', 'optuna', 'pandas', 'pyarrow', 'vl_convert'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_version(twin):
    assert twin("--version")[0].startswith("servetwin ")


def test_memory_explains_writes_and_judges(twin):
    out, err = twin("memory", "chat-h100", "--json", "-", "--out", "kv.html", "--claims")
    data = json.loads(out)
    assert len(data["rows"]) == 24
    assert len(data["claims"]) > 10
    assert "Where KV bytes go" in err
    assert Path("kv.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    twin("memory", "chat-h100", "--out", "kv.svg", "--set", "policy.block_size=32")
    assert Path("kv.svg").read_text(encoding="utf-8").startswith("<svg")


def test_kv_dtype_says_whether_it_pays(twin):
    out, err = twin("kv-dtype", "chat-h100", *SMALL, "--json", "-")
    data = json.loads(out)
    assert data["verdict"] in ("for", "against")
    assert data["kv_cache_dtype"] == "fp8"
    assert f"Advice: {data['verdict']} fp8 ({data['sure']})" in err
    again, _ = twin("kv-dtype", "chat-h100", *SMALL, "--json", "-")
    assert again == out
    told, _ = twin("kv-dtype", "summarisation-a100", *SMALL, "--dtype", "int8_per_token_head")
    assert "Advice: against int8_per_token_head" in told


def test_cache_compares_and_writes(twin):
    trace = written(Path(), SESSIONS)
    files = ("--html", "c.html", "--svg", "c.svg", "--csv", "c.csv")
    out, err = twin("cache", trace, "--json", "-", "--llm", "llama-3.1-8b", *files)
    data = json.loads(out)
    assert data["reuse"] == pytest.approx(9 / 15)
    assert {row["policy"] for row in data["rows"]} == {*EVICTION, "belady"}
    assert data["rows"][0]["capacity_bytes"] == 512 * 131_072
    assert "Belady" in err
    assert Path("c.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert Path("c.svg").read_text(encoding="utf-8").startswith("<svg")
    assert Path("c.csv").read_text(encoding="utf-8").count("\n") == 1 + len(data["rows"])


def test_cache_compares_what_is_asked_for(twin):
    trace = written(Path(), SESSIONS)
    asked = ("--policies", "ttl,lru", "--capacities", "all,4", "--ttl", "20", "--jobs", "2")
    out, _ = twin("cache", trace, "--json", "-", *asked)
    rows = json.loads(out)["rows"]
    hits = {(row["capacity_blocks"], row["policy"]): row["hits"] for row in rows}
    assert sorted(hits) == sorted(product((4, 6), ("belady", "lru", "ttl")))
    assert hits[6, "ttl"] < hits[6, "lru"] == hits[6, "belady"] == 9


def test_claims_need_no_scenario(twin):
    out, _ = twin("memory", "--claims")
    assert "16,384" in out
