"""What changes of a workload at another load, and what stays."""

import numpy as np
import pytest

from twin.errors import InputError
from twin.load import read_scenario_file
from twin.load.inputs import read_inputs
from twin.load.resolve import resolve_with
from twin.sweep.offered import Load, offered
from twin.sweep.scaling import scaled

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:00:{second:02}.0000000,{100 + second},{10 + second}\n"
    for second in range(0, 40, 2)
)


def file_of(**workload):
    return read_scenario_file("chat-h100", {"workload": workload})[0]


def requests_of(file, tmp_path):
    inputs = read_inputs(file, tmp_path, where="test")
    scenario = resolve_with(file, inputs, where="test")
    source = scenario.workload.source(np.random.SeedSequence(file.seed), 131072)
    return inputs, source.start()


def synthetic(**more):
    return file_of(
        kind="synthetic",
        prompt_tokens={"kind": "uniform", "low": 10, "high": 500},
        output_tokens=20,
        **more,
    )


def test_counted_requests_are_the_same_ones_closer_together(tmp_path):
    file = synthetic(arrivals={"kind": "poisson", "rate": 4}, num_requests=50)
    inputs, plain = requests_of(file, tmp_path)
    double = scaled(file, 2)
    _, there = requests_of(double, tmp_path)
    assert [r.prompt_tokens for r in there] == [r.prompt_tokens for r in plain]
    assert [2 * r.arrival_s for r in there] == pytest.approx([r.arrival_s for r in plain])
    assert offered(double, inputs) == Load(8.0, "req/s")


def test_a_duration_stays_and_more_requests_come(tmp_path):
    file = synthetic(arrivals={"kind": "constant", "rate": 4}, duration_s=10)
    _, plain = requests_of(file, tmp_path)
    _, there = requests_of(scaled(file, 2.5), tmp_path)
    assert (len(plain), len(there)) == (40, 100)
    assert there[-1].arrival_s == pytest.approx(plain[-1].arrival_s)


def test_stages_keep_their_durations_and_pauses(tmp_path):
    stages = [
        {"rate": 2, "duration_s": 5},
        {"rate": 0, "duration_s": 3},
        {"rate": 6, "duration_s": 2, "arrivals": "constant"},
    ]
    file = synthetic(arrivals={"kind": "stages", "stages": stages})
    found = scaled(file, 3).workload.arrivals.stages
    assert [(s.rate, s.duration_s) for s in found] == [(6, 5), (0, 3), (18, 2)]
    assert found[2].arrivals == "constant"
    inputs = read_inputs(file, tmp_path, where="test")
    assert offered(file, inputs) == Load(22 / 10, "req/s")


def test_a_trace_is_replayed_faster(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text(AZURE)
    file = file_of(kind="trace", path=str(path), rate_scale=0.5)
    inputs, plain = requests_of(file, tmp_path)
    assert len(plain) == 20
    assert offered(file, inputs) == Load(0.25, "req/s")
    assert scaled(file, 4).workload.rate_scale == 2
    assert offered(scaled(file, 4), inputs) == Load(1.0, "req/s")
    fewer = file_of(kind="trace", path=str(path), max_requests=5)
    assert offered(fewer, inputs) == Load(0.5, "req/s")
    drawn = file_of(kind="trace", path=str(path), arrivals={"kind": "gamma", "rate": 3})
    assert offered(scaled(drawn, 2), inputs) == Load(6.0, "req/s")


def test_a_trace_that_comes_at_once_has_no_load(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("\n".join(AZURE.splitlines()[:2]) + "\n")
    file = file_of(kind="trace", path=str(path))
    with pytest.raises(InputError, match=r"trace.csv: its requests all arrive at once.*arrivals"):
        offered(file, read_inputs(file, tmp_path, where="test"))


def test_sessions_go_on_starting_for_as_long(tmp_path):
    file, base = read_scenario_file("agentic-sessions-h100")
    there = scaled(file, 2).workload
    assert (there.arrivals.rate, there.num_sessions) == (1.6, 240)
    assert offered(file, read_inputs(file, base, where="test")) == Load(8.0, "req/s")
    assert scaled(file, 0.001).workload.num_sessions == 1


def test_clients_send_as_many_each_and_never_fewer_in_all():
    file = read_scenario_file("closed-loop-h100", {"workload.warmup_requests": 64})[0]
    more, less = scaled(file, 1.5).workload, scaled(file, 0.25).workload
    assert (more.concurrency, more.num_requests, more.warmup_requests) == (96, 960, 96)
    assert (less.concurrency, less.num_requests, less.warmup_requests) == (16, 640, 64)
    assert scaled(file, 0.001).workload.concurrency == 1


def test_stages_of_a_shared_prefix_load_keep_their_durations(tmp_path):
    file = file_of(
        kind="shared_prefix", behaviour="cycle", num_groups=2, prompts_per_group=3,
        system_prompt_tokens=100, question_tokens=50, output_tokens=5,
        stages=[{"rate": 1, "duration_s": 30}, {"rate": 4, "duration_s": 10}],
    )  # fmt: skip
    found = scaled(file, 2).workload.stages
    assert [(s.rate, s.duration_s, s.num_requests) for s in found] == [(2, 30, 60), (8, 10, 80)]
    assert offered(file, read_inputs(file, tmp_path, where="test")) == Load(70 / 40, "req/s")


@pytest.mark.parametrize("factor", [0, -1, float("nan"), float("inf")])
def test_no_factor(factor):
    with pytest.raises(InputError, match="no multiple of a load; give a number above 0"):
        scaled(file_of(**read_scenario_file("chat-h100")[0].workload.model_dump()), factor)


def test_out_of_bounds_is_one_line_that_names_load_and_key():
    file = synthetic(arrivals={"kind": "poisson", "rate": 4}, num_requests=50)
    with pytest.raises(InputError, match=r"chat-h100 at 1e\+06 times its load.*rate"):
        scaled(file, 1e6)
