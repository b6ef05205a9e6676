"""The command that checks kernels: what it runs, skips and reports."""

import json
from dataclasses import replace

import pytest
import torch

from kernels.case import Case
from kernels.catalogue import KERNELS
from kernels.checking import check_kernels, main, skip_reason

CPU = torch.device("cpu")


def case_of(launch, outputs, wanted):
    return Case(launch, outputs, lambda: wanted, 1e-3, 0.0, 0.0)


def fake(launch):
    """A kernel of one output of which 1 is wanted."""

    def make_case(shape, dtype, device, seed):
        out = torch.full((1, 2), float("nan"))
        return case_of(lambda: launch(out), (out,), (torch.ones(1, 2),))

    return replace(
        KERNELS["silu_mul"],
        name="fake",
        make_case=make_case,
        shapes=({"rows": 1},),
        dtypes=("float32",),
    )


def only_outcome(launch):
    return next(iter(check_kernels([fake(launch)], CPU, None, 5)))


def test_a_right_kernel_passes():
    outcome = only_outcome(lambda out: out.fill_(1.0))
    assert (outcome.status, outcome.error, outcome.seed) == ("ok", 0.0, 5)


def test_a_wrong_kernel_fails_with_its_error():
    outcome = only_outcome(lambda out: out.fill_(1.1))
    assert outcome.status == "FAIL"
    assert outcome.error == pytest.approx(0.1, rel=1e-3)


def test_an_output_not_written_fails():
    outcome = only_outcome(lambda out: out[:, :1].fill_(1.0))
    assert (outcome.status, outcome.error) == ("FAIL", float("inf"))


def test_a_launch_that_raises_fails_and_says_why():
    def launch(out):
        raise RuntimeError("no such instruction\nat line 3")

    outcome = only_outcome(launch)
    assert outcome.status == "FAIL"
    assert outcome.reason == "RuntimeError: no such instruction"


def test_each_case_has_inputs_of_its_own(device):
    seeds = []
    kernel = KERNELS["silu_mul"]

    def make_case(shape, dtype, device, seed):
        seeds.append(seed)
        return kernel.make_case(shape, dtype, device, seed)

    outcomes = list(check_kernels([replace(kernel, make_case=make_case)], device, None, 100))
    assert seeds == list(range(100, 100 + len(seeds)))
    assert len([o for o in outcomes if o.status == "ok"]) == len(seeds)


def test_what_cannot_be_checked_is_skipped_with_the_reason():
    assert skip_reason(KERNELS["matmul"], "float16", None) == ""
    reason = skip_reason(KERNELS["matmul"], "bfloat16", None)
    assert reason == "Triton's interpreter does not compute bfloat16 rightly; it needs a GPU"
    assert skip_reason(KERNELS["matmul"], "bfloat16", 80) == ""
    assert "needs capability 89" in skip_reason(KERNELS["matmul_fp8"], "fp8", 80)
    assert skip_reason(KERNELS["matmul_fp8"], "fp8", 90) == ""


def test_the_command_prints_a_line_a_case_and_a_summary(capsys):
    assert main(["--kernel", "silu_mul", "--seed", "11"]) == 0
    lines = capsys.readouterr().out.splitlines()
    kernel = KERNELS["silu_mul"]
    dtypes = kernel.dtypes if torch.cuda.is_available() else kernel.interpreted
    skipped = len(kernel.dtypes) - len(dtypes)
    assert len(lines) == len(dtypes) * len(kernel.shapes) + skipped + 1
    passed = len(dtypes) * len(kernel.shapes)
    assert lines[-1].startswith(f"{passed} ok, 0 failed, {skipped} skipped on ")
    assert lines[-1].endswith("seed 11")


def test_a_failure_is_the_exit_code_and_valid_json(monkeypatch, capsys):
    monkeypatch.setitem(KERNELS, "fake", fake(lambda out: None))
    assert main(["--kernel", "fake", "--json", "--seed", "1"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row.get("status") for row in rows] == ["FAIL", None]
    assert rows[0]["error"] is None
    assert rows[0]["reason"] == "not finite, or of a wrong shape"
    assert rows[-1]["summary"] == {"ok": 0, "failed": 1, "skipped": 0}


def test_without_a_seed_each_run_is_fresh(capsys):
    seeds = set()
    for _ in range(2):
        main(["--kernel", "silu_mul"])
        seeds.add(capsys.readouterr().out.split()[-1])
    assert len(seeds) == 2


def test_an_unknown_kernel_is_named(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--kernel", "matmull"])
    assert stop.value.code == 2
    assert "unknown kernel matmull; known are " in capsys.readouterr().err
