"""The scenario key `kv_layout`: what it changes in a run, and that the default changes nothing."""

import numpy as np
import pytest

from hwmodels.memory.cost import LaidOutCostModel
from hwmodels.memory.fits import memory_fit_for
from hwmodels.profile import HardwareProfile, Provenance, write_profile
from twin.engine import simulate
from twin.engine.engines import engine_costs
from twin.engine.kv_layout import layout_of, memory_fit_of
from twin.errors import InputError
from twin.llm.kv_cache import block_bytes
from twin.load import scenario_from
from twin.memory.explanation import explain

DEFAULT = {"pools": "per_layer", "order": "compact"}
SPREAD = {"pools": "cross_layer", "order": "scattered"}


def scenario(layout=None, **more):
    data = {
        "schema_version": 1,
        "llm": "llama-3.1-70b",
        "gpu": "h200_sxm",
        "parallelism": {"tp": 8},
        "policy": {"max_model_len": 16384},
        "workload": {
            "kind": "closed_loop",
            "concurrency": 160,
            "num_requests": 160,
            "prompt_tokens": 7000,
            "output_tokens": 300,
        },
        **more,
    }
    return scenario_from(data if layout is None else {**data, "kv_layout": layout})


def itl_s(layout, **more):
    return float(np.median(simulate(scenario(layout, **more)).itl_s[-2000:]))


def test_the_default_builds_no_wrapper_and_no_output_names_it():
    for layout in (None, DEFAULT):
        found = scenario(layout)
        assert not isinstance(engine_costs(found).cost_model, LaidOutCostModel)
        assert "kv_layout" not in found.as_dict()
        assert not any("KV layout" in note for note in found.notes)
    assert simulate(scenario(DEFAULT)).simulated_s == simulate(scenario()).simulated_s


def test_another_layout_is_told():
    found = scenario(SPREAD)
    assert isinstance(engine_costs(found).cost_model, LaidOutCostModel)
    assert found.as_dict()["kv_layout"] == SPREAD
    note = next(note for note in found.notes if note.startswith("KV layout"))
    assert "nobody measured tlb_l3_reach_bytes, walk_cycles, walkers" in note


def test_decodes_over_a_wide_pool_slow_down_and_others_do_not():
    plain = itl_s(DEFAULT)
    assert itl_s(SPREAD) > 1.05 * plain
    assert itl_s({"pools": "per_layer", "order": "scattered"}) == plain
    few = {"policy": {"max_model_len": 16384, "num_gpu_blocks": 80_000}}  # 52 GB
    assert itl_s(SPREAD, **few) == itl_s(DEFAULT, **few)


def test_the_layout_is_the_capacity_models():
    found = scenario(SPREAD)
    layout = layout_of(found)
    assert layout.block_bytes == block_bytes(found.arch, 16, "auto", 8)
    assert layout.pool_bytes == found.num_gpu_blocks * layout.block_bytes
    latent = scenario_from(
        {
            "schema_version": 1,
            "llm": "deepseek-v3",
            "gpu": "h200_sxm",
            "parallelism": {"tp": 8, "ep": 8},
            "policy": {"max_model_len": 4096},
            "kv_layout": SPREAD,
            "workload": {
                "kind": "closed_loop",
                "concurrency": 2,
                "num_requests": 4,
                "prompt_tokens": 100,
                "output_tokens": 10,
            },
        }
    )
    assert layout_of(latent).tensors == 1
    assert layout_of(latent).block_bytes == block_bytes(latent.arch, 16, "auto", 8)


def test_measured_layers_hold_one_layout():
    card = {"llm": "llama-3.1-8b", "gpu": "rtx_4090", "parallelism": {}, "policy": {}}
    card["policy"] = {"max_model_len": 8192}
    with pytest.raises(InputError, match="kv_layout is not simulated with measured layers"):
        scenario(SPREAD, **card)
    assert scenario(DEFAULT, **card).layer_profile is not None


def with_profile(tmp_path, **memory):
    profile = HardwareProfile(
        name="h200_sxm-servetwin-0.1.0",
        gpu="h200_sxm",
        engine="servetwin",
        engine_version="0.1.0",
        kind="kernels",
        provenance=Provenance("made up", "none", "2026-01-01"),
        tables={},
        parameters={"memory": memory},
    )
    path = tmp_path / "own.npz"
    path.write_bytes(write_profile(profile))
    return str(path)


def test_what_a_profile_measured_goes_before_the_priors(tmp_path):
    far = with_profile(tmp_path, tlb_l3_reach_bytes=2e11, walk_cycles=400.0, walkers=20)
    found = scenario(SPREAD, profile=far)
    assert memory_fit_of(found).tlb_l3_reach_bytes == 2e11
    assert any("all measured" in note for note in found.notes)
    assert itl_s(SPREAD, profile=far) == itl_s(DEFAULT, profile=far)
    near = with_profile(tmp_path, tlb_l3_reach_bytes=1e10)
    assert itl_s(SPREAD, profile=near) > itl_s(DEFAULT, profile=near)
    assert explain(scenario(SPREAD, profile=near)).fit.tlb_l3_reach_bytes == 1e10


def test_constants_that_are_none_are_refused_in_one_line(tmp_path):
    wrong = with_profile(tmp_path, tlb_l4_reach_bytes=1.0)
    with pytest.raises(InputError, match="tlb_l4_reach_bytes"):
        scenario(SPREAD, profile=wrong)
    assert scenario(DEFAULT, profile=wrong).profile is not None
    with pytest.raises(InputError, match="tlb_l4_reach_bytes"):
        explain(scenario(DEFAULT, profile=wrong))


def test_a_gpu_told_by_its_profile_borrows_and_says_so():
    fit = memory_fit_for("rtx_3090")
    assert fit.measured == frozenset()
    assert fit.dram_cycles is None
