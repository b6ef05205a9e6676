"""How a network is cut into pipeline stages, and what each takes."""

from dataclasses import replace

import pytest

from hwmodels.gpus import GPUS
from hwmodels.ops import Collective, Gemm
from hwmodels.roofline import RooflineCostModel
from tests.unit.llm.layer_profiles import DENSE, layer_profile
from twin.llm.arch import ModelArch, MoeArch
from twin.llm.cuda_graphs import capture_sizes
from twin.llm.layer_timer import LayerTimer
from twin.llm.lowering import Precision, body_ops, head_ops
from twin.llm.models import MODELS
from twin.llm.pipeline_timer import StageLink
from twin.llm.stages import Ends, pipeline_stages, stage_layers
from twin.llm.step_time import StepTimer
from twin.step import BatchShape

LLAMA_8B = MODELS["llama-3.1-8b"]
COSTS = RooflineCostModel(GPUS["h100_sxm"])
SHAPES = [
    BatchShape((), 16, 16_000, 1000, 16, 1000),
    BatchShape(((512, 512), (100, 900)), 7, 700, 100, 8, 100),
]


@pytest.mark.parametrize(
    ("layers", "pp", "counts"),
    [
        (32, 1, (32,)),
        (32, 2, (16, 16)),
        (33, 2, (17, 16)),
        (61, 4, (15, 15, 16, 15)),  # the remainder stays away from both ends
        (62, 4, (15, 16, 16, 15)),
        (63, 4, (16, 16, 16, 15)),
        (5, 5, (1, 1, 1, 1, 1)),
    ],
)
def test_layers_of_each_stage(layers, pp, counts):
    assert stage_layers(layers, pp) == counts


@pytest.mark.parametrize("pp", [1, 2, 3, 4, 7, 8])
@pytest.mark.parametrize("name", sorted(MODELS))
def test_stages_add_up_to_the_network(name, pp):
    arch = MODELS[name]
    stages = pipeline_stages(arch, pp)
    assert [stage.ends.first for stage in stages] == [True] + [False] * (pp - 1)
    assert [stage.ends.last for stage in stages] == [False] * (pp - 1) + [True]
    archs = [stage.arch for stage in stages]
    assert sum(a.num_layers for a in archs) == arch.num_layers
    assert sum(a.num_sliding_layers for a in archs) == arch.num_sliding_layers
    if arch.num_kv_layers is not None:
        assert sum(a.num_kv_layers for a in archs) == arch.num_kv_layers
    if arch.moe is not None:
        experts = [0 if a.moe is None else a.moe.num_moe_layers for a in archs]
        assert sum(experts) == arch.moe.num_moe_layers
        assert all(n <= a.num_layers for n, a in zip(experts, archs, strict=True))


def test_few_dense_layers_come_first():
    arch = ModelArch("moe", 61, 64, 4, 4, 16, 64, 1000, 4096, moe=MoeArch(8, 2, 32, 58))
    stages = pipeline_stages(arch, 4)
    assert [stage.arch.moe.num_moe_layers for stage in stages] == [12, 15, 16, 15]
    every_other = replace(arch, num_layers=8, moe=replace(arch.moe, num_moe_layers=4))
    assert [s.arch.moe.num_moe_layers for s in pipeline_stages(every_other, 4)] == [1] * 4
    all_dense_first = replace(arch, num_layers=8, moe=replace(arch.moe, num_moe_layers=6))
    assert pipeline_stages(all_dense_first, 4)[0].arch.moe is None


def test_only_the_ends_have_embedding_norm_and_the_odd_all_reduce():
    whole = body_ops(LLAMA_8B, Precision(), 2, 100)
    middle = body_ops(LLAMA_8B, Precision(), 2, 100, ends=Ends(first=False, last=False))
    assert len(whole) == len(middle) + 2
    repeats = [
        next(op.repeat for op in ops if isinstance(op, Collective)) for ops in (whole, middle)
    ]
    assert repeats == [65, 64]


@pytest.mark.parametrize("tp", [1, 2])
@pytest.mark.parametrize("pp", [2, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_stage_times_add_up_to_the_time_of_the_network(tp, pp, shape):
    sizes = capture_sizes(256, 8192)

    def timer(arch, **more):
        return StepTimer(COSTS, arch, Precision(), tp, capture_sizes=sizes, **more)

    stages = [timer(s.arch, ends=s.ends).time(shape) for s in pipeline_stages(LLAMA_8B, pp)]
    whole = timer(LLAMA_8B).time(shape)
    assert sum(s.seconds for s in stages) == pytest.approx(whole.seconds, rel=1e-9)
    head_s = sum(COSTS.cost(op).seconds for op in head_ops(LLAMA_8B, tp, shape.sampled_seqs))
    assert stages[-1].seconds > head_s
    if pp == 2:  # as many layers, but no output head
        assert stages[0].seconds < stages[1].seconds
        assert any(isinstance(op, Gemm) for op in head_ops(LLAMA_8B, tp, 1))


@pytest.mark.parametrize("tp", [1, 2])
def test_stages_of_measured_layers_add_up(tp):
    profile = layer_profile(tp=tp)
    whole = LayerTimer(profile, DENSE, tp).time(SHAPES[0]).seconds
    stages = [
        LayerTimer(profile, s.arch, tp, ends=s.ends).time(SHAPES[0]).seconds
        for s in pipeline_stages(DENSE, 2)
    ]
    assert sum(stages) == pytest.approx(whole, rel=1e-9)
    assert stages[0] < stages[1]


def test_a_transfer_moves_hidden_states_and_residual():
    one, two = (StageLink(LLAMA_8B, tp, COSTS.cost) for tp in (1, 2))
    moved = 2 * 300 * 4096 * 2.0
    send = COSTS.cost(Collective("send_recv", moved, 2)).seconds
    assert one.transfer_s(300) == send > 0
    half = COSTS.cost(Collective("send_recv", moved / 2, 2)).seconds
    gather = COSTS.cost(Collective("all_gather", moved / 2, 2, repeat=2)).seconds
    assert two.transfer_s(300) == half + gather
    assert 0 < one.feedback_s(300) < send
