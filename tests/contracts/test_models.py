"""What every network in the table must satisfy."""

import pytest

from twin.llm.kv_cache import block_bytes
from twin.llm.models import MODELS, find_model
from twin.llm.parallelism import Parallelism
from twin.llm.quantization import resolve_dtypes
from twin.llm.weights import parameter_count, rotary_table_bytes, weights_bytes


@pytest.mark.parametrize("name", sorted(MODELS))
def test_contract(name: str) -> None:
    arch = MODELS[name]
    assert arch.name == name == name.lower()
    assert arch.source.startswith("huggingface.co/")
    assert arch.num_heads % arch.num_kv_heads == 0
    assert 0 <= arch.num_sliding_layers <= arch.num_layers
    assert (arch.sliding_window is None) == (arch.num_sliding_layers == 0)
    if arch.moe:
        assert 0 < arch.moe.num_moe_layers <= arch.num_layers
        assert arch.moe.experts_per_token <= arch.moe.num_experts
    Parallelism(tp=2).validate(arch)
    resolve_dtypes(arch, None)
    assert parameter_count(arch) > 0
    assert rotary_table_bytes(arch) > 0
    sizes = [weights_bytes(arch, tp=tp) for tp in (1, 2, 4)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] < 2 * sizes[1] <= 2 * sizes[0]
    assert block_bytes(arch, 16, "fp8") * 2 == block_bytes(arch, 16)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_its_own_name_finds_it(name: str) -> None:
    assert find_model(name) == MODELS[name]
