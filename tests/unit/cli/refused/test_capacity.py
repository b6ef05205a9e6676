"""`twin capacity`: what it refuses."""

import pytest

from tests.unit.cli.refused.one_line import assert_one_line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("capacity", "--model", "llama", "--gpu", "h100_sxm"), "llama"),
        (("capacity", "--model", "llama-3.1-8b", "--gpu", "h100"), "did you mean"),
        (("capacity", "--model", "llama-3.1-8b", "--gpu", "h100_sxm", "--tp", "0"), "--tp"),
        (
            ("capacity", "--model", "llama-3.1-8b", "--gpu", "h100_sxm", "--kv-cache-dtype", "fp9"),
            "fp9",
        ),
        (
            ("capacity", "--model", "llama-3.1-8b", "--gpu", "h100_sxm", "--quantization", "fp9"),
            "fp9",
        ),
        (
            (
                "capacity",
                "--model",
                "llama-3.1-8b",
                "--gpu",
                "h100_sxm",
                "--gpu-memory-utilization",
                "nan",
            ),
            "gpu_memory_utilization",
        ),
        (
            ("capacity", "--model", "llama-3.1-8b", "--gpu", "h100_sxm", "--engine", "vlm"),
            "vlm",
        ),
    ],
)
def test_bad_arguments(twin, arguments, says):
    assert_one_line(twin(*arguments), says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--max-num-seqs", "9" * 400), "--max-num-seqs"),
        (("--max-num-batched-tokens", "9" * 400), "--max-num-batched-tokens"),
        (("--json", "."), "is a folder; name a file"),
    ],
)
def test_capacity_beyond_reason(twin, options, says):
    arguments = ("capacity", "--model", "llama-3.1-8b", "--gpu", "h100_sxm")
    assert_one_line(twin(*arguments, *options), says)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--model", "llama-9"), "--model: unknown model 'llama-9'"),
        (("--engine-version", "abc"), "--engine-version: engine version 'abc' is not a version"),
        (("--engine", "sglang", "--pp", "2"), "--pp: pp 2 is not simulated for sglang"),
        (
            ("--max-num-seqs", "4096", "--max-num-batched-tokens", "100"),
            "max_num_batched_tokens 100 is below max_num_seqs 4096",
        ),
        (
            ("--model", "llama-3.1-8b-fp8", "--quantization", "none"),
            "quantization 'none' asked of llama-3.1-8b-fp8",
        ),
    ],
)
def test_capacity_refuses_what_simulate_refuses(twin, options, says):
    model = () if "--model" in options else ("--model", "llama-3.1-8b")
    assert_one_line(twin("capacity", *model, "--gpu", "h100_sxm", *options), says)
