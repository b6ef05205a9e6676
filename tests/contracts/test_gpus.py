"""Every GPU and link of the tables: facts are complete, sourced and plausible, and priced."""

import dataclasses

import pytest

from hwmodels.cost import cost_model_for
from hwmodels.efficiency import EFFICIENCIES
from hwmodels.gpus import GPUS
from hwmodels.links import LINKS
from hwmodels.ops import (
    Collective,
    DecodeAttention,
    Elementwise,
    ExpertGemm,
    Gemm,
    PrefillAttention,
    Sampling,
)

OPS = [
    Gemm(64, 4096, 4096),
    Gemm(64, 4096, 4096, "fp8", "fp8"),
    Gemm(64, 4096, 4096, "bf16", "int4"),
    ExpertGemm(64, 2048, 768, 1536, 128, 128, 8),
    PrefillAttention(512, 2048, 32, 8, 128, 128),
    DecodeAttention(64, 65536, 1024, 32, 8, 128, 128, 4096.0),
    Elementwise(1e6, 2),
    Collective("all_reduce", 2**20, 4),
    Collective("all_gather", 2**20, 8),
    Collective("send_recv", 2**20, 2),
    Sampling(64, 128256),
]


@pytest.mark.parametrize("name", GPUS)
def test_facts_are_named_sourced_and_plausible(name):
    gpu = GPUS[name]
    assert gpu.name == name
    facts = {field.name for field in dataclasses.fields(gpu)}
    assert gpu.sources[""]
    assert set(gpu.sources) - {""} <= facts, "a source for a fact that doesn't exist"
    assert gpu.assumed <= set(gpu.sources), "an assumed fact says what was assumed"
    assert all("assumed" in gpu.source_of(fact) for fact in gpu.assumed)
    assert 0.9 * gpu.memory_bytes < gpu.visible_memory_bytes < gpu.memory_bytes
    assert gpu.flops_per_s["bf16"] > 1e14
    assert gpu.hbm_bytes_per_s > 5e11
    assert gpu.node.link in LINKS
    assert gpu.node.host_link in LINKS


@pytest.mark.parametrize("name", GPUS)
def test_power_is_told_and_sourced(name):
    gpu = GPUS[name]
    assert {"power_w", "idle_power_w"} <= set(gpu.sources)
    assert 0.1 < gpu.idle_power_w / gpu.power_w < 0.35
    assert "power_w" not in gpu.assumed, "a limit is in every datasheet"


@pytest.mark.parametrize("name", LINKS)
def test_links_are_named_and_sourced(name):
    link = LINKS[name]
    assert link.name == name
    assert {"bytes_per_s", "sustained_bytes_per_s", "fully_connected"} <= set(link.sources)
    assert link.sustained_bytes_per_s < link.bytes_per_s


@pytest.mark.parametrize("name", GPUS)
def test_every_gpu_has_an_efficiency_that_names_its_lender(name):
    efficiency = EFFICIENCIES[name]
    assert set(efficiency.borrowed_from) <= set(GPUS)
    assert bool(efficiency.borrowed_from) <= (not efficiency.measured)
    for fit in (efficiency.gemm, efficiency.prefill, efficiency.decode):
        assert fit.measured == (fit.fitted_on == name)


@pytest.mark.parametrize("name", GPUS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: type(op).__name__)
def test_every_operation_has_a_price_that_repeats(name, op):
    cost_model = cost_model_for(name)
    once = cost_model.cost(op)
    assert 1e-6 < once.seconds < 1e-2
    assert once.kernels >= 1
    assert cost_model.cost(op) == once
    if hasattr(op, "repeat"):
        many = cost_model.cost(dataclasses.replace(op, repeat=32))
        assert many.seconds == pytest.approx(32 * once.seconds)
        assert many.kernels == 32 * once.kernels


@pytest.mark.parametrize("name", GPUS)
def test_no_gpu_beats_its_datasheet(name):
    gpu, cost_model = GPUS[name], cost_model_for(name)
    square = cost_model.cost(Gemm(8192, 8192, 8192)).seconds
    assert 0.5 < 2 * 8192**3 / square / gpu.flops_per_s["bf16"] < 1
    stream = cost_model.cost(Gemm(1, 28672, 8192)).seconds
    assert 0.5 < 2 * 28672 * 8192 / stream / gpu.hbm_bytes_per_s < 1
    kv = DecodeAttention(64, 64 * 8192, 8192, 32, 8, 128, 128, 4096.0)
    assert 0.5 < 64 * 8192 * 4096 / cost_model.cost(kv).seconds / gpu.hbm_bytes_per_s < 1


def test_an_unknown_gpu_is_a_key_error():
    with pytest.raises(KeyError):
        cost_model_for("h100_pcie")


def test_visible_memory_is_what_engines_saw():
    assert GPUS["rtx_4090"].visible_memory_bytes == 25_250_627_584
    assert GPUS["h200_sxm"].visible_memory_bytes == 150_700_000_000
    assert GPUS["rtx_pro_6000"].visible_memory_bytes == 102_000_000_000
    assert GPUS["h100_sxm"].visible_memory_bytes / 2**30 == pytest.approx(79.1)
    assert GPUS["a100_sxm"].visible_memory_bytes / 2**30 == pytest.approx(79.15)
