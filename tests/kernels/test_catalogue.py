"""The contract of every kernel of the catalogue, and of its compilation."""

import json
import os
import subprocess
import sys

import pytest
import torch

from kernels.catalogue import KERNELS
from kernels.judging import case_error

CASES = [
    pytest.param(kernel, dtype, shape, id=f"{kernel.name}-{dtype}-{number}")
    for kernel in KERNELS.values()
    for dtype in (kernel.dtypes if torch.cuda.is_available() else kernel.interpreted)
    for number, shape in enumerate(kernel.shapes)
]


@pytest.mark.parametrize(("kernel", "dtype", "shape"), CASES)
def test_a_kernel_equals_its_oracle(kernel, dtype, shape, device):
    case = kernel.make_case(shape, dtype, device, 7)
    assert case_error(case) <= case.tolerance


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))
def test_a_kernel_says_what_it_runs(kernel):
    assert kernel.sources
    assert kernel.shapes
    assert set(kernel.interpreted) <= set(kernel.dtypes)
    assert kernel.compile_specs(90)


@pytest.mark.parametrize("capability", [80, 90])
def test_all_kernels_compile_without_spills_and_within_shared_memory(capability):
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "kernels.compiling", "--capability", str(capability), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    assert rows, run.stderr
    assert [row for row in rows if row["problem"]] == []
    assert run.returncode == 0, run.stderr
    compiled = {row["kernel"] for row in rows}
    assert compiled == {k.name for k in KERNELS.values() if k.compile_specs(capability)}
