from hwmodels.gpus import GPUS
from hwmodels.ops import Elementwise
from hwmodels.roofline import RooflineCostModel
from twin.llm.fusions import norms_in_all_reduce
from twin.llm.lowering import Precision, body_ops
from twin.llm.models import find_model


def test_only_families_that_the_engine_fuses_and_only_over_ranks():
    assert norms_in_all_reduce("trtllm", "llama-3.1-70b-fp8", 2)
    assert not norms_in_all_reduce("trtllm", "llama-3.1-70b-fp8", 1)
    assert not norms_in_all_reduce("trtllm", "qwen3-32b", 8)
    assert not norms_in_all_reduce("vllm", "llama-3.1-70b", 8)


def test_fused_norms_are_two_kernels_a_layer_less_and_the_same_bytes():
    arch = find_model("llama-3.1-8b")
    plain, fused = (
        [op for op in body_ops(arch, Precision(), 2, 64, fused_norms=f) if _small(op)]
        for f in (False, True)
    )
    assert sum((a.kernels - b.kernels) * a.repeat for a, b in zip(plain, fused, strict=True)) == 64
    assert [a.num_bytes for a in plain] == [b.num_bytes for b in fused]
    costs = RooflineCostModel(GPUS["h100_sxm"])
    assert sum(costs.cost(op).seconds for op in fused) < sum(costs.cost(op).seconds for op in plain)


def _small(op):
    return isinstance(op, Elementwise)
