import pytest

from hwmodels.gpus import GPUS
from hwmodels.host import HOST_COSTS, prior_host_costs
from hwmodels.interpolate import log_interpolate
from hwmodels.ops import Bound, Elementwise, Sampling
from hwmodels.roofline import RooflineCostModel


def test_elementwise_is_two_us_a_kernel_plus_bytes():
    h100 = RooflineCostModel(GPUS["h100_sxm"])
    assert h100.cost(Elementwise(0.0, 5)).seconds == pytest.approx(10e-6)
    large = h100.cost(Elementwise(2750e6, 1))
    assert large.seconds == pytest.approx(1e-3 + 2e-6)
    assert large.bound is Bound.HBM


def test_sampling_scales_with_logits():
    h100 = RooflineCostModel(GPUS["h100_sxm"])
    assert h100.cost(Sampling(0, 128256)).seconds == 0.0
    small, large = (h100.cost(Sampling(seqs, 128256)).seconds for seqs in (1, 256))
    assert small < 20e-6
    assert large == pytest.approx(8e-6 + 256 * 128256 * 10 / 2750e9)


def test_launch_floor_in_a_graph_and_eagerly():
    a100, h200 = RooflineCostModel(GPUS["a100_sxm"]), RooflineCostModel(GPUS["h200_sxm"])
    assert a100.launch_floor_s(100, graph=True) == pytest.approx(140e-6)
    assert a100.launch_floor_s(100, graph=False) == pytest.approx(4.4e-3)
    assert h200.launch_floor_s(100, graph=False) == pytest.approx(2e-3)


@pytest.mark.parametrize("engine", HOST_COSTS)
def test_host_priors_lie_in_the_published_ranges(engine):
    costs = prior_host_costs(engine, "0.19.0")
    assert 0.1e-3 <= costs.schedule_s + costs.update_s <= 1.6e-3
    assert 0.01e-3 <= costs.schedule_per_seq_s + costs.update_per_seq_s <= 0.04e-3
    assert 3e-3 <= costs.api_s <= 5e-3
    assert costs.source
    assert not costs.fitted


def test_host_versions_pick_the_newest_entry_not_above(monkeypatch):
    old, new = prior_host_costs("vllm"), prior_host_costs("sglang")
    monkeypatch.setitem(HOST_COSTS, "vllm", (((0,), old), ((0, 14), new)))
    assert prior_host_costs("vllm", "0.13.9") is old
    assert prior_host_costs("vllm", "0.14") is new
    assert prior_host_costs("vllm", "0.14.0") is new
    assert prior_host_costs("vllm") is old
    with pytest.raises(KeyError):
        prior_host_costs("triton")


def test_log_interpolation_freezes_at_the_edges():
    points = ((1.0, 10.0), (100.0, 20.0))
    assert log_interpolate(0.1, points) == 10.0
    assert log_interpolate(10.0, points) == pytest.approx(15.0)
    assert log_interpolate(1000.0, points) == 20.0
