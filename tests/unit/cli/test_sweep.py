"""`twin sweep` and `twin size`: what they print and write, and how they end."""

import json

import pytest

from twin.cli.app import app
from twin.cli.running import run
from twin.sweep.sizing import Sizing
from twin.sweep.sweep import LoadSweep

SMALL = (
    "chat-h100",
    "--set",
    "workload.num_requests=60",
    "--set",
    "workload.prompt_tokens=500",
    "--set",
    "workload.output_tokens=30",
)


@pytest.fixture
def twin(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; return (stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0):
        assert run(app, list(arguments)) == code
        captured = capsys.readouterr()
        return captured.out, captured.err

    return call


def test_sweep_prints_writes_and_is_reproducible(twin, tmp_path):
    out, err = twin("sweep", *SMALL, "--factors", "1, 8", "--json", "s.json", "--html", "s.html")
    assert err == ""
    assert "the SLO" in out.splitlines()[0]
    data = json.loads((tmp_path / "s.json").read_text())
    assert {"limit", "knee", "first_to_break"} <= set(data)
    assert data["limit"]["sentence"].split(";")[0] in out
    assert LoadSweep.from_dict(data).points[0].offered == 12
    page = (tmp_path / "s.html").read_text()
    assert data["first_to_break"]["sentence"] in page
    assert 'id="payload"' in page
    again, _ = twin("sweep", *SMALL, "--factors", "8,1", "--json", "-", "--quiet")
    assert json.loads(again) == data


def test_resolution_0_adds_no_loads(twin):
    out, _ = twin("sweep", *SMALL, "--factors", "1,20", "--resolution", "0", "-q", "--json", "-")
    assert len(json.loads(out)["points"]) == 2


def test_size_prints_and_writes(twin):
    out, err = twin("size", *SMALL, "--json", "-")
    data = json.loads(out)
    assert Sizing.from_dict(data).replicas == data["gpus"] == 1
    assert "1 x h100_sxm (1 replica of 1) meets the SLO" in err


def test_size_ends_with_1_where_no_number_is_enough(twin):
    out, _ = twin("size", *SMALL, "--set", "slo.tpot_s=0.0001", "--most", "2", code=1)
    assert "No number of replicas up to 2 meets the SLO" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sweep", "chat-h100", "--factors", "1,two"), "'two' is no multiple of a load"),
        (("sweep", "chat-h100", "--factors", ""), "'' is no multiple of a load"),
        (("sweep", "chat-h100", "--factors", "1e9"), "chat-h100 at 1e+09 times its load"),
        (("sweep", "chat-h100", "--resolution", "-1"), "--resolution: -1 is none"),
        (("sweep", "chat-h100", "--html", "a", "--json", "a"), "--html writes there too"),
        (("sweep", "chat-h100", "--html", "-"), "standard output is for --json"),
        (("sweep", "nothing"), "nothing"),
        (("size", "chat-h100", "--most", "0"), "most: at most 0 replicas"),
        (("size", "closed-loop-h100"), "there is no SLO to size for"),
    ],
)
def test_bad_input_is_one_line(twin, arguments, message):
    out, err = twin(*arguments, code=2)
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert err.count("\n") == 1


def test_an_output_never_replaces_the_trace(twin, tmp_path):
    trace = tmp_path / "t.csv"
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:00:00.0,9,2\n"
    trace.write_text(text)
    _, err = twin("sweep", "chat-h100", "--set", "workload.path=t.csv", "--html", "t.csv", code=2)
    assert "would replace the input" in err
    assert trace.read_text() == text
