"""What a study is asked: as a problem, as a command, as files."""

import json

import pytest

from app.answers.search.order import Order, Wanted, own_gpus, read_order, space_of, told
from app.answers.setup import Setup
from twin.errors import InputError
from twin.load.scenario_file import read_scenario_file

TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:{n // 60:02d}:{n % 60:02d}.0000000,{100 + n},{10 + n % 7}\n" for n in range(120)
)


@pytest.fixture
def own(tmp_path):
    """A scenario of a visitor's own with an uploaded trace."""
    path = tmp_path / "upload" / "trace.csv"
    path.parent.mkdir()
    path.write_text(TRACE)
    data = {
        "schema_version": 1, "name": "mine", "llm": "llama-3.1-8b", "gpu": "h100_sxm",
        "workload": {"kind": "synthetic", "arrivals": {"kind": "poisson", "rate": 4},
                     "num_requests": 20, "prompt_tokens": 100, "output_tokens": 20},
        "slo": {"ttft_s": 1.0},
    }  # fmt: skip
    return Setup(
        "chat-h100", data, {"seed": 3}, {"workload.path": str(path)}, {"workload.path": "x"}
    )


@pytest.mark.parametrize(
    ("wanted", "options"),
    [
        (Wanted(), "--trials 50"),
        (
            Wanted(("p99_ttft_s", "usd_per_mtok"), 9, "any", ("policy.block_size",), 2, 2.5),
            "--objective p99_ttft_s --objective usd_per_mtok --trials 9 --engine any --gpus 2 "
            "--price 2.5 --knob policy.block_size",
        ),
    ],
)
def test_options_are_those_of_the_command(wanted, options):
    assert " ".join(wanted.options()) == options


def test_the_command_names_a_visitors_files_beside_it(own):
    command = Order(own, Wanted()).command()
    assert command == (
        "twin search ./scenario.yaml --set workload.path=./trace.csv --set seed=3 --trials 50 "
        "--out search"
    )


def test_a_study_has_its_own_copies(own, tmp_path):
    folder = tmp_path / "study"
    folder.mkdir()
    order = Order(own, Wanted(trials=3))
    order.write(folder)
    (tmp_path / "upload" / "trace.csv").unlink()  # the visitor leaves
    again = read_order(folder)
    assert again.wanted == order.wanted
    assert again.setup.digest() == own.digest()
    assert again.setup.private == {"workload.path": str(folder / "input" / "trace.csv")}
    assert str(tmp_path) not in (folder / "order.json").read_text()
    problem = again.problem(folder / "input")
    assert problem.file.workload.kind == "trace"
    file, _ = read_scenario_file(folder / "input" / "scenario.yaml")
    assert file.name == "mine"


def test_contradictions_are_one_line_without_folders(own, tmp_path):
    folder = tmp_path / "draft"
    folder.mkdir()
    with pytest.raises(InputError) as told_so:
        Order(own, Wanted(gpus=0)).problem(folder)
    assert "budget of 0 GPUs" in str(told_so.value)
    other = tmp_path / "other"
    other.mkdir()
    missing = Setup(own.example, {**own.data, "slo": {}}, {}, own.private)
    with pytest.raises(InputError, match="the scenario has none") as told_so:
        Order(missing, Wanted()).problem(other)
    assert str(tmp_path) not in str(told_so.value)


def test_the_space_is_what_has_an_effect(tmp_path):
    setup = Setup("chat-h100")
    space = space_of(Order(setup, Wanted(knobs=("policy.block_size",))), tmp_path)
    assert "policy.max_num_seqs" in space.knobs
    assert "parallelism.tp" in space.dropped
    assert space.engine == "vllm"
    wider = space_of(Order(setup, Wanted(gpus=4)), tmp_path)
    assert "parallelism.tp" in wider.knobs
    assert own_gpus(Order(Setup("llama70b-fp8-tp4-h100"), Wanted())) == 4


def test_a_setup_in_a_few_words(own):
    assert told(own) == "mine, own trace, seed 3"
    assert told(Setup("chat-h100", None, {"policy.block_size": None})) == (
        "chat-h100, block_size null"
    )


@pytest.mark.parametrize("text", ["", "[]", json.dumps({"setup": {}, "wanted": {}})])
def test_an_order_that_cannot_be_read_is_one_line(tmp_path, text):
    (tmp_path / "order.json").write_text(text)
    with pytest.raises(InputError, match="this study: cannot be read"):
        read_order(tmp_path)
