"""The scenario key `profile`: kernels priced by a file of the user's own."""

import importlib.util
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from hwmodels.cost import given_cost_model
from hwmodels.efficiency import EFFICIENCIES
from hwmodels.given import gpu_of, read_given
from hwmodels.gpus import GPUS
from hwmodels.ops import Elementwise
from hwmodels.profile import HardwareProfile, ProfileError, Provenance, write_profile
from twin.engine import simulate
from twin.engine.engines import engine_costs
from twin.errors import InputError
from twin.load import load_scenario, scenario_from
from twin.load.examples import FOLDER
from twin.report.html import html_report, scenario_yaml
from twin.report.metrics import summarise

FACTS = {
    "name": "rtx_3090",
    "title": "NVIDIA GeForce RTX 3090",
    "architecture": "ampere",
    "compute_capability": [8, 6],
    "flops_per_s": {"bf16": 71e12, "int8": 142e12},
    "hbm_bytes_per_s": 936e9,
    "memory_bytes": 24 * 2**30,
    "visible_memory_bytes": 25_300_000_000,
    "num_sms": 82,
    "l2_bytes": 6 * 2**20,
    "l2_segments": 1,
    "boost_hz": 1695e6,
    "node": {"num_gpus": 1, "link": "pcie4", "host_link": "pcie4", "source": "assumed"},
    "sources": {"": "told by the driver"},
    "assumed": ["node", "flops_per_s"],
}
SMALL = {"max_model_len": 8192}
SLOW = {"gemm": {"memory": 0.2, "t0_s": 20e-6}}


def profile(**more):
    fields = {
        "name": "h100_sxm-servetwin-0.1.0",
        "gpu": "h100_sxm",
        "engine": "servetwin",
        "engine_version": "0.1.0",
        "kind": "kernels",
        "provenance": Provenance("made up", "none", "2026-01-01"),
        "tables": {},
        "parameters": SLOW,
    }
    return HardwareProfile(**{**fields, **more})


def unknown_gpu(**facts):
    told = {**FACTS, **facts}
    told = {key: value for key, value in told.items() if value is not None}
    return profile(gpu="rtx_3090", name="rtx_3090-servetwin-0.1.0", facts={"gpu": told})


@pytest.fixture
def written(tmp_path):
    """Write a profile and return its path."""

    def write(given, name="own.npz"):
        path = tmp_path / name
        path.write_bytes(write_profile(given))
        return path

    return write


def data(**more):
    found = yaml.safe_load((FOLDER / "chat-h100.yaml").read_text())
    found["workload"]["num_requests"] = 40
    return {**found, **more}


def times(scenario, engine="fast"):
    result = simulate(scenario, engine=engine)
    return result.requests.finish_s.tobytes(), result.steps.end_s.tobytes()


def test_power_of_a_described_gpu_may_be_told_or_left_out():
    assert gpu_of(unknown_gpu()).power_w is None
    told = gpu_of(unknown_gpu(power_w=350, idle_power_w=40))
    assert (told.power_w, told.idle_power_w) == (350.0, 40.0)
    with pytest.raises(ProfileError, match="power_w"):
        gpu_of(unknown_gpu(power_w=-1))


def test_a_profile_prices_kernels_instead_of_the_shipped_one(written):
    shipped = scenario_from(data())
    own = scenario_from(data(profile=str(written(profile()))))
    assert (
        summarise(simulate(own))["tpot_s"]["p50"]
        > 2 * summarise(simulate(shipped))["tpot_s"]["p50"]
    )
    assert shipped.profile is None
    assert "profile" not in shipped.as_dict()


def test_its_path_starts_from_the_scenario_and_an_override_from_here(
    written, monkeypatch, tmp_path
):
    path = written(profile())
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(data(profile="own.npz")))
    loaded = load_scenario(tmp_path / "s.yaml")
    assert loaded.as_dict()["profile"] == str(path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    (elsewhere / "mine.npz").write_bytes(path.read_bytes())
    overridden = load_scenario(tmp_path / "s.yaml", {"profile": "mine.npz"})
    assert overridden.as_dict()["profile"] == str(elsewhere / "mine.npz")
    assert overridden.profile == loaded.profile  # equal files


def test_its_digest_stands_in_inputs_notes_and_reports(written):
    given = read_given(written(profile()))
    scenario = scenario_from(data(profile=str(written(profile()))))
    result = simulate(scenario)
    assert result.inputs["profile_sha256"] == given.sha256
    assert given.sha256[:12] in result.notes[-1]
    assert "measured under servetwin 0.1.0" in result.notes[-1]
    assert given.sha256[:12] in html_report(result, summarise(result))
    again = scenario_from(yaml.safe_load(scenario_yaml(result.inputs)))
    assert again.as_dict() == scenario.as_dict()


def test_another_file_has_another_digest(written):
    one = read_given(written(profile()))
    other = read_given(written(profile(parameters={"gemm": {"memory": 0.3}})))
    assert one.sha256 != other.sha256
    assert one != other


@pytest.mark.parametrize("kind", ["interpreted", "compiled"])
def test_engines_agree_bit_for_bit_under_a_profile(written, kind):
    if kind == "compiled" and importlib.util.find_spec("numba") is None:
        pytest.skip("numba is not installed")
    scenario = scenario_from(
        data(profile=str(written(unknown_gpu())), gpu="rtx_3090", policy=SMALL)
    )
    assert times(scenario, kind) == times(scenario, "reference")


def test_a_scenario_goes_to_another_process_without_the_file(written):
    path = written(profile(tables={"gemm.bf16": table()}))
    scenario = scenario_from(data(profile=str(path)))
    sent = pickle.dumps(scenario)
    path.unlink()
    given_cost_model.cache_clear()
    received = pickle.loads(sent)
    assert received.profile == scenario.profile
    assert times(received) == times(scenario)


def table():
    m, n, k = np.meshgrid([1, 64, 4096], [1024, 4096, 8192], [1024, 4096, 8192], indexing="ij")
    columns = {name: axis.ravel() for name, axis in (("m", m), ("n", n), ("k", k))}
    return {**columns, "seconds": 1e-5 + 2.0 * m.ravel() * n.ravel() * k.ravel() / 300e12}


def test_a_gpu_nobody_shipped_comes_with_its_profile(written):
    scenario = scenario_from(
        data(profile=str(written(unknown_gpu())), gpu="rtx_3090", policy=SMALL)
    )
    assert scenario.gpu.num_sms == 82
    assert scenario.gpu.compute_capability == (8, 6)
    model = engine_costs(scenario).cost_model.base
    assert model.efficiency.gemm.memory == 0.2  # its own
    lender = EFFICIENCIES["a100_sxm"]
    assert model.efficiency.gemm.tensor == lender.gemm.tensor  # borrowed
    assert simulate(scenario).pools[0].gpu == "rtx_3090"


def test_a_gpu_without_a_node_is_taken_as_one_on_pcie(written):
    scenario = scenario_from(
        data(profile=str(written(unknown_gpu(node=None))), gpu="rtx_3090", policy=SMALL)
    )
    assert scenario.gpu.node.link == "pcie4"
    assert "node" in scenario.gpu.assumed


def test_launching_and_streaming_come_from_the_profile(written):
    launch = {"stream_gap_s": 1e-6, "graph_gap_s": 3e-6, "eager_op_s": 5e-6}
    own = profile(parameters={"launch": launch, "stream": 0.5})
    model = given_cost_model(read_given(written(own)))
    assert model.launch_floor_s(10, graph=True) == pytest.approx(3e-5)
    assert model.launch_floor_s(10, graph=False) == pytest.approx(5e-5)
    half = 1e9 / (0.5 * GPUS["h100_sxm"].hbm_bytes_per_s)
    assert model.cost(Elementwise(1e9)).seconds == pytest.approx(half, rel=0.02)
    plain = given_cost_model(read_given(written(profile(parameters={}), "plain.npz")))
    assert plain.efficiency == EFFICIENCIES["h100_sxm"]


def test_a_dry_run_is_taken_and_every_report_says_so(written):
    scenario = scenario_from(data(profile=str(written(profile(engine="dry-run")))))
    result = simulate(scenario)
    assert "durations are pretended" in result.notes[-1]
    assert "durations are pretended" in html_report(result, summarise(result))


@pytest.mark.parametrize(
    ("given", "changes", "said"),
    [
        (profile(), {"gpu": "a100_sxm"}, "measured on h100_sxm; set gpu to h100_sxm"),
        (profile(kind="layers"), {}, "holds layers, not kernels"),
        (profile(gpu="rtx_3090"), {}, "'rtx_3090' is not known here, and the profile does not say"),
        (unknown_gpu(num_sms=None), {}, "lack 'num_sms'"),
        (unknown_gpu(num_sms=-1), {}, "num_sms is -1; a number above 0"),
        (unknown_gpu(flops_per_s={"fp16": 1e12}), {}, "lack the rate of bf16"),
        (unknown_gpu(name="rtx_3080"), {}, "of the GPU 'rtx_3080', measurements of 'rtx_3090'"),
        (unknown_gpu(bus="wide"), {}, "hold 'bus'"),
        (unknown_gpu(node={**FACTS["node"], "link": "string"}), {}, "the link 'string'"),
        (unknown_gpu(), {"gpu": "rtx_309"}, "did you mean 'rtx_3090'"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_in_one_line(written, given, changes, said):
    with pytest.raises(InputError) as caught:
        scenario_from(data(profile=str(written(given)), **changes))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_refused_in_one_line(written, tmp_path):
    path = written(profile(tables={"gemm.bf16": table()}))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    for name in (str(path), str(tmp_path), str(tmp_path / "none.npz")):
        with pytest.raises(InputError, match="profile"):
            scenario_from(data(profile=name))


def test_pools_must_be_of_the_profiles_gpu(written):
    pools = [{"gpu": "h100_sxm"}, {"gpu": "a100_sxm"}]
    with pytest.raises(InputError, match="the GPU is a100_sxm, but the profile"):
        scenario_from(data(profile=str(written(profile())), cluster={"pools": pools}))
    same = replace_gpu(pools, "h100_sxm")
    scenario = scenario_from(data(profile=str(written(profile())), cluster={"pools": same}))
    assert all(pool.scenario.profile is not None for pool in scenario.pools)
    assert scenario.as_dict()["profile_sha256"]


def replace_gpu(pools, gpu):
    return [{**pool, "gpu": gpu} for pool in pools]


def test_measured_layers_give_way_to_a_profile(written):
    shipped = scenario_from(data(gpu="rtx_4090", engine={"version": "0.19.0"}, policy=SMALL))
    assert shipped.layer_profile is not None
    own = replace(profile(), gpu="rtx_4090", name="rtx_4090-servetwin-0.1.0")
    scenario = scenario_from(
        data(gpu="rtx_4090", engine={"version": "0.19.0"}, policy=SMALL, profile=str(written(own)))
    )
    assert scenario.layer_profile is None


def test_shipped_examples_know_no_profile():
    for path in Path(FOLDER).glob("*.yaml"):
        assert load_scenario(path).profile is None
