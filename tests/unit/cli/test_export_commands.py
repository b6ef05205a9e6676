"""`twin export` and `twin import-config`: what they print and write, and how they refuse."""

from pathlib import Path

import pytest
import yaml

from twin.cli.app import app
from twin.cli.running import run

SMALL = ("--set", "workload.num_requests=20")
MODEL = "meta-llama/Llama-3.1-8B"


@pytest.fixture
def twin(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; return (stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0):
        assert run(app, list(arguments)) == code
        captured = capsys.readouterr()
        return captured.out, captured.err

    return call


def test_without_a_folder_the_main_file_goes_to_standard_output(twin):
    out, err = twin("export", "chat-h100", "--to", "vllm", *SMALL, "--set", "policy.block_size=32")
    assert yaml.safe_load(out) == {"model": MODEL, "block-size": 32}
    assert "vllm.sh" in err
    assert list(Path.cwd().iterdir()) == []


def test_with_a_folder_all_files_are_written(twin):
    out, _ = twin("export", "chat-h100", "--to", "kubernetes", *SMALL, "--out", "deploy")
    assert sorted(p.name for p in Path("deploy").iterdir()) == [
        "kubernetes.yaml", "prometheus-adapter.yaml",
    ]  # fmt: skip
    assert out.count("wrote deploy/") == 2


def test_what_is_exported_can_be_imported_and_simulated(twin):
    twin("export", "chat-h100", "--to", "vllm", *SMALL, "--set", "policy.watermark=0.02",
         "--out", "deploy")  # fmt: skip
    for name in ("vllm.yaml", "vllm.sh"):
        out, _ = twin(
            "import-config", f"deploy/{name}", "--base", "chat-h100", "--out", "mine.yaml"
        )
        assert "twin simulate mine.yaml" in out
        data = yaml.safe_load(Path("mine.yaml").read_text())
        assert data["policy"] == {"watermark": 0.02}
        assert data["name"] == "mine"
        twin("simulate", "mine.yaml", *SMALL, "-q")


def test_import_reads_arguments_and_keeps_the_bases_load(twin):
    out, err = twin("import-config", "--args", f"vllm serve {MODEL} --max-num-sequences 3 --port 1",
                    "--base", "summarisation-a100", "--set", "policy.block_size=32")  # fmt: skip
    data = yaml.safe_load(out)
    assert data["gpu"] == "a100_sxm"
    assert data["workload"]["num_requests"] == 300
    assert data["policy"] == {"block_size": 32}
    assert "did you mean 'max-num-seqs'?" in err
    assert "Not simulated: port." in err


def test_arguments_go_before_the_file(twin):
    Path("vllm.yaml").write_text(f"model: {MODEL}\nmax-num-seqs: 64\nblock-size: 32\n")
    out, err = twin("import-config", "vllm.yaml", "--gpu", "h100_sxm", "--args",
                    "vllm serve --config vllm.yaml --max-num-seqs 128")  # fmt: skip
    assert yaml.safe_load(out)["policy"] == {"max_num_seqs": 128, "block_size": 32}
    assert "was not read" not in err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("export", "chat-h100", "--to", "vlm"), "unknown target 'vlm'; did you mean 'vllm'"),
        (("export", "chat-h101", "--to", "vllm"), "no such scenario"),
        (("export", "chat-h100", "--to", "sglang"), "the scenario's engine is vllm, not sglang"),
        (("export", "chat-h100", "--to", "vllm", "--set", "policy.block_size=24"), "block-size"),
        (("export", ".", "--to", "vllm"), "holds no scenario.yaml"),
        (("export", "chat-h100", "--to", "vllm", "--out", ""), "--out: is empty"),
        (("import-config",), "nothing to read"),
        (("import-config", "no.yaml"), "no such configuration"),
        (("import-config", "--args", "ls -l"), "starts none of"),
        (("import-config", "--args", f"vllm serve {MODEL}"), "on which GPU"),
        (("import-config", "--engine", "tgi", "--args", "x"), "unknown engine 'tgi'"),
        (("import-config", "--args", f"vllm serve {MODEL}", "--base", "no"), "no such scenario"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(twin, arguments, problem):
    out, err = twin(*arguments, code=2)
    assert out == ""
    assert problem in err
    assert err.count("\n") == 1
    assert list(Path.cwd().iterdir()) == []


def test_a_file_in_the_way_stays(twin):
    Path("deploy").write_text("mine")
    _, err = twin("export", "chat-h100", "--to", "vllm", *SMALL, "--out", "deploy", code=2)
    assert "is a file" in err
    Path("vllm.yaml").write_text(f"model: {MODEL}\n")
    twin("import-config", "vllm.yaml", "--gpu", "h100_sxm", "--out", "vllm.yaml", code=2)
    assert Path("vllm.yaml").read_text() == f"model: {MODEL}\n"
