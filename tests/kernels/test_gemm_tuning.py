"""Choosing configurations by time: with a clock that is told what to say."""

import pytest
import torch
from triton.runtime.errors import OutOfResources

from kernels.errors import KernelInputError
from kernels.gemm.autotune import GemmKey, GemmTuner
from kernels.gemm.config import GemmConfig
from kernels.gemm.dense_cases import launch
from kernels.timing import FakeTimer

SLOW, FAST, HUGE = (GemmConfig(16, 16, 16, 1, 4, 3, split) for split in (1, 2, 4))
KEY = GemmKey("matmul", "float16", 8, 8, 64)
SECONDS = {SLOW: 3e-6, FAST: 2e-6, HUGE: 1e-6}


class Bench:
    """Launches that only note which candidate ran."""

    def __init__(self):
        self.ran = []

    def launch_of(self, config):
        def run():
            if config is HUGE:
                raise OutOfResources(300_000, 232_448, "shared memory")
            self.ran.append(config)

        return run

    def tuner(self, gpu="H200"):
        return GemmTuner(FakeTimer(lambda: SECONDS[self.ran[-1]]), gpu)


def test_the_fastest_that_fits_is_chosen_and_timed_once():
    bench = Bench()
    tuner = bench.tuner()
    for _ in range(2):
        assert tuner.best(KEY, (SLOW, FAST, HUGE), bench.launch_of) == FAST
    assert bench.ran == [SLOW, FAST]


def test_choices_outlive_the_process():
    bench = Bench()
    tuner = bench.tuner()
    tuner.best(KEY, (SLOW, FAST), bench.launch_of)
    later, other = Bench(), GemmKey("matmul", "float16", 8, 8, 128)
    again = later.tuner()
    again.read_json(tuner.to_json())
    assert again.known() == tuner.known()
    assert again.best(KEY, (SLOW, FAST), later.launch_of) == FAST
    assert later.ran == []
    again.best(other, (SLOW,), later.launch_of)
    assert later.ran == [SLOW]


def test_nothing_fits():
    bench = Bench()
    with pytest.raises(KernelInputError, match=r"no candidate of .* fits H200"):
        bench.tuner().best(KEY, (HUGE,), bench.launch_of)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not a file of tuned configurations"),
        ("[]", "not a file of tuned configurations"),
        ('{"schema": 1, "gpu": "H200", "tuned": [{"m": 1}]}', "not a file of tuned"),
        ('{"schema": 9, "gpu": "H200", "tuned": []}', "schema 9; 1 is needed"),
        ('{"schema": 1, "gpu": "A100", "tuned": []}', "tuned on A100; this is H200"),
    ],
)
def test_other_files_are_refused(text, words):
    with pytest.raises(KernelInputError, match=words):
        Bench().tuner().read_json(text)


def test_a_real_product_is_tuned(device):
    a, b = (torch.randn(8, 64, device=device).half(), torch.randn(64, 8, device=device).half())
    c = torch.empty(8, 8, dtype=torch.float16, device=device)
    times = iter([2e-6, 1e-6])
    tuner = GemmTuner(FakeTimer(lambda: next(times)), "H200")
    assert tuner.best(KEY, (SLOW, FAST), lambda config: launch(a, b, c, config)) == FAST
    assert torch.allclose(c.float(), a.float() @ b.float(), rtol=1e-2, atol=1e-2)
