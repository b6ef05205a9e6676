"""Every kernel compiles for both targets, and what is unfit for a GPU is reported."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernels.case import no_specs
from kernels.catalogue import KERNELS
from kernels.judging import case_error
from tests.kernels.unfit import UNFIT

ROOT = Path(__file__).resolve().parents[2]
CAPABILITIES = (80, 90)
REPORT = """
import json, sys
from dataclasses import asdict
from kernels.compiling import compile_all
from tests.kernels.unfit import UNFIT
for row in compile_all(UNFIT.values(), int(sys.argv[1])):
    print(json.dumps(asdict(row)))
"""


def start(arguments, cache):
    """Start Python without the interpreter of kernels, and with a cache of its own."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(process):
    """Return (JSON rows, exit code, what it complained of)."""
    out, complaint = process.communicate(timeout=540)
    return [json.loads(line) for line in out.splitlines()], process.returncode, complaint


def test_all_kernels_compile_without_spills_and_within_shared_memory(tmp_path):
    command = ["-m", "kernels.compiling", "--json", "--capability"]
    processes = [start([*command, str(capability)], tmp_path) for capability in CAPABILITIES]
    for capability, process in zip(CAPABILITIES, processes, strict=True):
        rows, code, complaint = finish(process)
        assert rows, complaint
        assert [row for row in rows if row["problem"]] == []
        assert code == 0, complaint
        compiled = {row["kernel"] for row in rows}
        assert compiled == {k.name for k in KERNELS.values() if k.compile_specs(capability)}
        assert all(row["registers"] > 0 for row in rows)


def test_fp8_is_compiled_for_parts_that_have_it():
    assert KERNELS["matmul_fp8"].compile_specs(90)
    assert KERNELS["matmul_fp8"].compile_specs(80) == no_specs(80)


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """What the compile check says of each unfit kernel."""
    rows, _, complaint = finish(start(["-c", REPORT, "90"], tmp_path_factory.mktemp("triton")))
    assert len(rows) == len(UNFIT), complaint
    return {row["kernel"]: row for row in rows}


def test_a_kernel_that_only_the_interpreter_takes_is_reported(reported, device):
    kernel = UNFIT["changing_sum"]
    if os.environ.get("TRITON_INTERPRET") == "1":
        case = kernel.make_case(kernel.shapes[0], "float32", device, 0)
        assert case_error(case) <= case.tolerance
    problem = reported["changing_sum"]["problem"]
    assert problem.startswith("does not compile: ")
    assert "total" in problem
    assert "int32" in problem


def test_a_range_known_at_run_time_is_reported(reported):
    problem = reported["run_time_range"]["problem"]
    assert problem.startswith("does not compile: ")
    assert "arange" in problem


def test_spills_are_reported(reported):
    row = reported["many_registers"]
    assert row["spill_bytes"] > 0
    assert row["problem"] == f"spills {row['spill_bytes']} bytes a thread"


def test_too_much_shared_memory_is_reported(reported):
    row = reported["much_shared_memory"]
    assert row["shared_bytes"] > 227 * 1024
    assert row["problem"].startswith(f"takes {row['shared_bytes']} bytes of shared memory")


def test_a_problem_fails_the_command(monkeypatch, capsys):
    from kernels import compiling

    row = compiling.Resources("some", "tile", 90, 40, 2048, 8, problem="spills 8 bytes a thread")
    none = compiling.Resources("other", "tile", 90, problem="does not compile: an error")
    monkeypatch.setattr(compiling, "compile_all", lambda kernels, capability: iter([row, none]))
    monkeypatch.setattr(sys, "argv", ["compiling", "--capability", "90"])
    assert compiling.main() == 1
    told = capsys.readouterr().out
    assert "spills 8 bytes a thread" in told
    assert told.splitlines()[-1] == (
        "1 of 2 compiled for sm_90, 1 spill, largest shared memory 2,048 B of 232,448 (some tile)"
    )


@pytest.mark.parametrize("name", ["checking", "compiling", "probes.collectives"])
def test_without_torch_or_triton_a_command_says_so_in_one_line(name):
    # An interpreter without site packages has neither.
    told = subprocess.run(
        [sys.executable, "-S", "-m", f"kernels.{name}"],
        cwd=ROOT,
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTHON")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr.count("\n") == 1
    assert f"python -m kernels.{name} needs numpy and torch" in told.stderr
    assert "; from a clone: pip install -e '.[kernels]'" in told.stderr


def test_a_type_left_out_is_named():
    from kernels.case import CompileSpec
    from kernels.compiling import _signature

    spec = CompileSpec("x", UNFIT["changing_sum"].sources[0], {"out": "*fp32"}, {})
    with pytest.raises(ValueError, match="x: no type given for size"):
        _signature(spec)
