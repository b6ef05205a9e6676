import pytest

from hwmodels.gpus import GPUS
from twin.defaults import resolve
from twin.policy import EnginePolicy


def resolved(gpu="h100_sxm", version="0.33.0", **policy):
    return resolve(EnginePolicy(**policy), GPUS[gpu], version, 131072, 0.92)


@pytest.mark.parametrize(
    ("gpu", "seqs", "budget"),
    [
        ("h100_sxm", 1024, 8192),
        ("h200_sxm", 1024, 8192),
        ("b200_sxm", 1024, 8192),
        ("a100_sxm", 256, 2048),  # large, yet served with the small defaults
        ("l40s", 256, 2048),
        ("rtx_4090", 256, 2048),
    ],
)
def test_sizes_by_gpu(gpu, seqs, budget):
    policy = resolved(gpu)
    assert (policy.max_num_seqs, policy.max_num_batched_tokens) == (seqs, budget)


@pytest.mark.parametrize(
    ("version", "asynchronous"),
    [
        ("0.13.9", False),
        ("0.14.0", True),
        ("0.15.1 fork", True),
        ("0.33.0", True),
        ("0.9.2", False),
    ],
)
def test_asynchronous_scheduling_by_version(version, asynchronous):
    assert resolved(version=version).async_scheduling is asynchronous
    assert resolved(version=version, async_scheduling=True).async_scheduling
    assert not resolved(version=version, async_scheduling=False).async_scheduling


def test_what_is_given_stands():
    policy = resolved(max_num_seqs=3, max_num_batched_tokens=64, max_model_len=99)
    assert (policy.max_num_seqs, policy.max_num_batched_tokens) == (3, 64)
    assert policy.max_model_len == 99
    assert resolved().max_model_len == 131072


def test_without_chunked_prefill_the_budget_holds_a_longest_prompt():
    assert resolved(enable_chunked_prefill=False).max_num_batched_tokens == 131072
    assert resolved(enable_chunked_prefill=False, max_model_len=512).max_num_batched_tokens == 8192


def test_budget_and_batch_stay_consistent():
    assert resolved(max_num_seqs=20_000).max_num_batched_tokens == 20_000
    assert resolved(max_num_batched_tokens=100).max_num_seqs == 100
