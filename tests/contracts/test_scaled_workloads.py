"""Every kind of workload can be swept: scaled, told in load, simulated at each load."""

import json
from typing import get_args

import pytest

from twin.engine import simulate
from twin.load import read_scenario_file
from twin.load.inputs import read_inputs
from twin.load.resolve import resolve_with
from twin.sweep.offered import offered
from twin.sweep.runs import Runs
from twin.sweep.scaling import scaled
from twin.sweep.sweep import LoadSweep, sweep_load
from twin.workload.spec import WorkloadSpec

TRACE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:00:{second:02}.0000000,{200 + second},{10 + second % 7}\n"
    for second in range(40)
)
LENGTHS = {"prompt_tokens": 200, "output_tokens": 10}
RATE = {"kind": "poisson", "rate": 5}
WORKLOADS = {
    "trace": [{"path": "trace.csv"}, {"path": "trace.csv", "arrivals": RATE}],
    "synthetic": [
        {"arrivals": RATE, "num_requests": 40, **LENGTHS},
        {"arrivals": {"kind": "stages", "stages": [{"rate": 4, "duration_s": 8}]}, **LENGTHS},
    ],
    "closed_loop": [{"concurrency": 4, "num_requests": 20, **LENGTHS}],
    "sessions": [
        {
            "arrivals": RATE,
            "num_sessions": 12,
            "turns": 3,
            "message_tokens": 50,
            "answer_tokens": 8,
            "next_turn": {"kind": "after_answer", "think_time_s": 0.1},
        }
    ],
    "shared_prefix": [
        {
            "behaviour": behaviour,
            "num_groups": 2,
            "prompts_per_group": 3,
            "system_prompt_tokens": 60,
            "question_tokens": 40,
            "output_tokens": 8,
            "stages": [{"rate": 4, "duration_s": 6}],
        }
        for behaviour in ("cycle", "grow")
    ],
}
CASES = [(kind, spec) for kind, specs in WORKLOADS.items() for spec in specs]
FACTORS = (0.5, 1.0, 2.0, 4.0)


@pytest.fixture(params=CASES, ids=[f"{kind}-{i}" for i, (kind, _) in enumerate(CASES)])
def case(request, tmp_path):
    kind, spec = request.param
    (tmp_path / "trace.csv").write_text(TRACE)
    spec = {"kind": kind, **spec}
    if kind == "trace":
        spec["path"] = str(tmp_path / "trace.csv")
    file, base = read_scenario_file("chat-h100", {"workload": spec})
    return file, read_inputs(file, base, where="test")


def test_every_kind_has_a_case():
    kinds = {get_args(spec.model_fields["kind"].annotation)[0] for spec in _specs()}
    assert kinds == set(WORKLOADS)


def _specs():
    return get_args(get_args(WorkloadSpec)[0])


def test_load_is_proportional_to_the_factor(case):
    file, inputs = case
    own = offered(file, inputs)
    for factor in FACTORS:
        there = offered(scaled(file, factor), inputs)
        assert there.value == pytest.approx(factor * own.value)
        assert there.unit == own.unit


def test_once_its_load_is_the_plain_scenario_bit_for_bit(case):
    file, inputs = case
    assert scaled(file, 1) == file
    shared = Runs(inputs).run(scaled(file, 1))[1]
    plain = simulate(resolve_with(file, inputs, where="test"))
    for column in ("arrival_s", "first_token_s", "finish_s"):
        assert (
            getattr(shared.requests, column).tobytes() == getattr(plain.requests, column).tobytes()
        )
    assert shared.itl_s.tobytes() == plain.itl_s.tobytes()


def test_it_is_swept_and_kept_as_json(case):
    file, inputs = case
    sweep = sweep_load(file, inputs, FACTORS)
    assert {point.factor for point in sweep.points} >= set(FACTORS)
    for low, high in zip(sweep.points, sweep.points[1:], strict=False):
        assert low.offered < high.offered
    for point in sweep.points:
        assert point.requests > 0
        assert point.goodput_per_s is not None
    assert LoadSweep.from_dict(json.loads(json.dumps(sweep.as_dict(), allow_nan=False))) == sweep
