"""What is measured, in which order, and on which GPU."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from measuring_fakes import H200, gemm

from calibrate.measuring.adapters import case_shape
from calibrate.measuring.clocks import Clocks, parsed
from calibrate.measuring.device import Properties, as_facts, facts_of, slug, spec_of
from calibrate.measuring.order import coarse_to_fine, interleaved
from calibrate.measuring.plan import chosen, kernel_items, smallest
from hwmodels.efficiency import efficiency_of
from hwmodels.gpus import GPUS
from hwmodels.measured.tables import COLUMNS, kernel_of
from twin.errors import InputError

QUEUES = kernel_items(H200)
ITEMS = [item for items, _ in QUEUES for item in items]


def test_every_item_has_its_tables_axes_and_no_item_twice():
    for item in ITEMS:
        assert set(item.shape) == set(COLUMNS[kernel_of(item.table)]), item
    assert len({item.key for item in ITEMS}) == len(ITEMS)


def test_decode_is_cold_and_its_warm_rows_stand_apart():
    assert {item.l2 for item in ITEMS if kernel_of(item.table) == "decode"} == {"cold"}
    assert {item.l2 for item in ITEMS if kernel_of(item.table) == "decode_warm"} == {"warm"}


def test_tile_edges_and_networks_of_the_physics_are_there():
    rows = {item.shape["m"] for item in ITEMS if item.table == "gemm.bf16"}
    assert {1, 255, 256, 257, 1023, 1024, 1025, 16384} <= rows
    weights = {(i.shape["n"], i.shape["k"]) for i in ITEMS if i.table == "gemm.bf16"}
    assert {(6144, 4096), (4096, 14336), (1280, 8192), (8192, 1024)} <= weights


def test_a_small_gpu_gets_less_kv_and_one_without_fp8_no_fp8():
    small = replace(H200, visible_memory_bytes=12 * 2**30, flops_per_s={"bf16": 1e14})
    items = [item for found, _ in kernel_items(small) for item in found]
    longest = max(
        i.shape["batch"] * i.shape["length"] * i.shape["kv_heads"]
        for i in items
        if i.table == "decode.128.bf16"
    )
    assert 512 * longest <= 2**30
    assert 0 < len(items) < len(ITEMS)
    assert not [item for item in items if "fp8" in item.table]


def test_a_full_plan_fits_nine_minutes_on_h200():
    assert sum(item.box_s for item in ITEMS) < 9 * 60 - 200


def test_any_start_of_the_plan_holds_every_important_family():
    plan = chosen(QUEUES, [], {item.family for item in ITEMS})
    assert {item.family for item in plan[:60]} >= {"gemm", "decode", "prefill"}
    assert len(plan) == len(ITEMS)


def test_families_are_chosen_by_name():
    plan = chosen(QUEUES, ["prefill"], {item.family for item in ITEMS})
    assert {item.family for item in plan} == {"prefill"}
    with pytest.raises(InputError, match=r"--only: no family 'prefil'; did you mean 'prefill'"):
        chosen(QUEUES, ["prefil"], {item.family for item in ITEMS})


def test_the_small_plan_takes_the_cheapest_few_of_each_table():
    for (small, _), (whole, _) in zip(smallest(QUEUES), QUEUES, strict=True):
        assert len(small) == min(4, len(whole))
        assert max(i.work_s for i in small) <= min(
            (i.work_s for i in whole if i not in small), default=9
        )


def test_grids_go_from_coarse_to_fine():
    points = coarse_to_fine({"x": tuple(range(9)), "y": (0, 1)})
    assert [p["x"] for p in points if p["y"] == 0] == [0, 8, 4, 2, 6, 1, 3, 5, 7]
    assert len(points) == 18
    assert coarse_to_fine({"x": (5,)}) == [{"x": 5}]


def test_queues_advance_by_their_weight():
    merged = interleaved([([gemm(m) for m in range(1, 31)], 3.0), ([gemm(99)] * 10, 1.0), ([], 1)])
    assert len(merged) == 40
    first = [item.shape["m"] for item in merged[:20]]
    assert first.count(99) == 5


def test_shapes_of_cases():
    shape = {"heads": 32, "kv_heads": 8, "batch": 4, "length": 100}
    item = gemm(1, table="decode.64.bf16", launches="paged_decode", shape=shape)
    found = case_shape(item)
    assert (found["dim"], found["context_tokens"], found["seqs"]) == (64, 100, 4)
    assert case_shape(gemm(3)) == {"m": 3, "n": 4096, "k": 4096, "transposed_b": 1}
    norm = {"rows": 2, "columns": 8, "residual": 1}
    assert case_shape(gemm(1, table="rms_norm.bf16", launches="rms_norm", shape=norm)) == norm


H200_PROPERTIES = Properties("NVIDIA H200", (9, 0), 132, 50 * 2**20, 150_100_000_000)


def test_known_parts_are_recognised_and_slices_are_not():
    assert facts_of(H200_PROPERTIES) == as_facts(H200)
    for name, title, sms, memory in (
        ("a100_sxm", "NVIDIA A100-SXM4-80GB", 108, 84_987_740_160),
        ("h100_sxm", "NVIDIA H100 80GB HBM3", 132, 84_942_979_072),
        ("rtx_4090", "NVIDIA GeForce RTX 4090", 128, 25_250_627_584),
        ("l40s", "NVIDIA L40S", 142, 47_700_000_000),
        ("rtx_pro_6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 188, 102_000_000_000),
        ("b200_sxm", "NVIDIA B200", 148, 191_500_000_000),
    ):
        found = facts_of(Properties(title, (9, 0), sms, 2**25, memory))
        assert found["name"] == name
    for other in (
        replace(H200_PROPERTIES, num_sms=60),
        replace(H200_PROPERTIES, memory_bytes=70 * 2**30),
        replace(H200_PROPERTIES, name="NVIDIA H100 PCIe", num_sms=114),
        replace(H200_PROPERTIES, name="NVIDIA GeForce RTX 4090 D", num_sms=114),
    ):
        assert facts_of(other)["name"] not in GPUS


@pytest.mark.parametrize("name", sorted(GPUS))
def test_facts_are_plain_data_and_make_the_part_again(name):
    import json

    facts = json.loads(json.dumps(as_facts(GPUS[name])))
    spec = spec_of(facts)
    assert spec == GPUS[name]
    assert dict(spec.sources) == dict(GPUS[name].sources)


def test_a_gpu_nobody_wrote_down_has_facts_with_sources_and_borrows_efficiencies():
    told = Properties(
        "NVIDIA GeForce RTX 3090", (8, 6), 82, 6 * 2**20, 25_438_126_080, 1.695e9, 9.751e9, 384
    )
    facts = facts_of(told)
    spec = spec_of(facts)
    assert (spec.name, spec.architecture) == ("rtx_3090", "ampere")
    assert spec.hbm_bytes_per_s == pytest.approx(936e9, rel=1e-3)
    assert spec.flops_per_s["bf16"] == pytest.approx(71e12, rel=0.02)
    assert "fp8" not in spec.flops_per_s
    assert {"flops_per_s", "l2_segments"} <= spec.assumed
    assert "hbm_bytes_per_s" not in spec.assumed
    assert not efficiency_of(spec).measured
    assert efficiency_of(spec).gemm.fitted_on == "a100_sxm"


def test_a_driver_that_tells_no_bandwidth_leaves_it_to_the_stream():
    facts = facts_of(Properties("Some Card", (9, 0), 50, 2**24, 2**34))
    assert facts["hbm_bytes_per_s"] == 0
    assert {"hbm_bytes_per_s", "boost_hz"} <= set(facts["assumed"])


def test_names_become_slugs():
    assert slug("NVIDIA GeForce RTX 3080 Ti") == "rtx_3080_ti"
    assert slug("Tesla T4") == "tesla_t4"
    assert slug("NVIDIA H100 80GB HBM3 MIG 1g.10gb") == "h100_80gb_hbm3_mig_1g.10gb"


def test_clocks_as_nvidia_smi_prints_them():
    assert parsed("1980, 3201, 1980, 570.86.15\n") == Clocks(1.98e9, 3.201e9, 1.98e9, "570.86.15")
    with pytest.raises(ValueError, match="N/A"):
        parsed("[N/A], 3201, 1980, 570.86.15\n")


def test_without_nvidia_smi_nobody_tells_clocks(monkeypatch):
    from calibrate.measuring.clocks import read_clocks

    monkeypatch.setenv("PATH", "")
    assert read_clocks() is None
