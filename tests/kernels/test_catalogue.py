"""The contract of every kernel of the catalogue."""

import pytest
import torch

from kernels.catalogue import KERNELS
from kernels.judging import case_error, relative_error

CASES = [
    pytest.param(kernel, dtype, shape, id=f"{kernel.name}-{dtype}-{number}")
    for kernel in KERNELS.values()
    for dtype in (kernel.dtypes if torch.cuda.is_available() else kernel.interpreted)
    for number, shape in enumerate(kernel.shapes)
]
EACH = pytest.mark.parametrize("kernel", KERNELS.values(), ids=list(KERNELS))


@pytest.mark.parametrize(("kernel", "dtype", "shape"), CASES)
def test_a_kernel_equals_its_oracle(kernel, dtype, shape, device):
    case = kernel.make_case(shape, dtype, device, 7)
    assert case_error(case) <= case.tolerance


@EACH
def test_a_case_is_poisoned_and_may_be_launched_again(kernel, device):
    dtype = kernel.interpreted[0] if kernel.interpreted else None
    if dtype is None:
        pytest.skip("nothing that the interpreter computes rightly")
    case = kernel.make_case(kernel.shapes[0], dtype, device, 7)
    # A cache starts with numbers, so that a slot nobody may touch is seen to be touched.
    for output, wanted in zip(case.outputs, case.oracle(), strict=True):
        assert relative_error(output, wanted) > case.tolerance
    case.launch()
    assert case_error(case) <= case.tolerance
    assert case.moved_bytes > 0


@EACH
def test_a_kernel_says_what_it_runs(kernel):
    assert kernel.shapes
    assert set(kernel.interpreted) <= set(kernel.dtypes)
    # A library's kernel has neither a source to hash nor anything to compile.
    assert bool(kernel.sources) == bool(kernel.compile_specs(90))
    functions = {spec.function for spec in kernel.compile_specs(90)}
    assert functions <= set(kernel.sources)
