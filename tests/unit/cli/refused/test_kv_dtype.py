"""`twin kv-dtype`: what it refuses."""

import pytest

from tests.unit.cli.refused.one_line import assert_one_line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("kv-dtype", "chat-h100", "--dtype", "fp9"), "unknown kv_cache_dtype 'fp9'"),
        (("kv-dtype", "chat-h100", "--dtype", "auto"), "is 16 bits"),
        (("kv-dtype", "chat-h100", "--set", "policy.kv_cache_dtype=fp8"), "use --dtype"),
        (("kv-dtype", "summarisation-a100", "--dtype", "fp8_per_token_head"), "8.9"),
        (
            (
                "kv-dtype",
                "chat-h100",
                "--set",
                "cluster={pools: [{replicas: 1, policy: {kv_cache_dtype: fp8}}]}",
            ),
            "a pool has a kv_cache_dtype of its own",
        ),
        (
            (
                "kv-dtype",
                "chat-h100",
                "--set",
                "policy.max_model_len=16",
                "--set",
                "workload.num_requests=3",
            ),
            "no request was served",
        ),
    ],
)
def test_bad_arguments(twin, arguments, says):
    assert_one_line(twin(*arguments), says)
