"""Constants: every GPU has them, every one says where from, a profile goes before the table."""

from dataclasses import fields

import pytest

from hwmodels.gpus import GPUS
from hwmodels.memory.constants import CONSTANTS
from hwmodels.memory.fits import MEMORY_FITS, memory_fit, memory_fit_for
from hwmodels.memory.l2 import effective_bytes, hit_cycles, stays_warm, warm_share
from hwmodels.memory.paging import least_kappa, table_bytes
from hwmodels.profile import ProfileError


def test_every_gpu_has_an_entry_of_its_name():
    assert set(MEMORY_FITS) == set(GPUS)
    assert all(fit.gpu == name for name, fit in MEMORY_FITS.items())


@pytest.mark.parametrize("gpu", sorted(GPUS))
@pytest.mark.parametrize("name", CONSTANTS)
def test_every_constant_is_unknown_or_sourced(gpu, name):
    fit = MEMORY_FITS[gpu]
    source = fit.source_of(name)
    if getattr(fit, name) is None:
        assert source == "unknown"
        assert name not in fit.measured
        return
    assert source not in ("unknown", "prior") or name == "tlb_l2_miss_cycles"
    if name in fit.measured:
        assert "prior" not in source
    interval = fit.interval_of(name)
    if interval is not None:
        assert interval[0] <= getattr(fit, name) <= interval[1]


def test_priors_that_matter_have_width():
    for fit in MEMORY_FITS.values():
        for name in ("walkers", "walk_cycles", "tlb_l3_reach_bytes"):
            low, high = fit.interval_of(name)
            assert name in fit.measured or low < high or fit.gpu != "h200_sxm"
    low, high = MEMORY_FITS["h200_sxm"].interval_of("tlb_l3_reach_bytes")
    assert low < 64e9 < high


def test_a_profile_goes_before_the_table():
    fit = memory_fit("h200_sxm", {"walk_cycles": 612.5, "tlb_l1_entries": 32.0, "walkers": None})
    assert (fit.walk_cycles, fit.tlb_l1_entries, fit.walkers) == (612.5, 32, 23)
    assert {"walk_cycles", "tlb_l1_entries"} <= fit.measured
    assert fit.source_of("walk_cycles") == "measured: hardware profile"
    assert fit.interval_of("walk_cycles") == (612.5, 612.5)
    assert "walkers" not in fit.measured


def test_what_a_dry_run_says_is_pretended_and_keeps_its_interval():
    prior = MEMORY_FITS["h200_sxm"]
    given = {"walk_cycles": 612.5, "tlb_l1_miss_cycles": 12.0, "stream_bytes_per_s": 4e12}
    fit = memory_fit("h200_sxm", given, pretended=True)
    assert fit.pretended == given.keys()
    assert not fit.measured & given.keys()
    assert fit.walk_cycles == 612.5
    assert all(fit.source_of(name).startswith("pretended") for name in given)
    assert fit.interval_of("walk_cycles") == prior.interval_of("walk_cycles") == (300, 700)
    assert fit.interval_of("tlb_l1_miss_cycles") == (0, 12)
    assert "l2_bytes_per_s" in fit.measured
    assert not memory_fit("h200_sxm", given).pretended


def test_speeds_by_class_come_with_text_keys_from_json():
    fit = memory_fit("a100_sxm", {"alignment_speed": {"16": 1.0, "8": 0.9, "4": 0.5, "2": 0.4}})
    assert fit.alignment_speed == {16: 1.0, 8: 0.9, 4: 0.5, 2: 0.4}


def test_no_parameters_is_the_table():
    assert memory_fit("a100_sxm") is MEMORY_FITS["a100_sxm"]
    assert memory_fit("a100_sxm", {}) is MEMORY_FITS["a100_sxm"]
    assert memory_fit_for("h100_sxm", "sglang", "0.5.23").gpu == "h100_sxm"


@pytest.mark.parametrize(
    "wrong",
    [
        {"tlb_l4_reach_bytes": 1.0},
        {"gpu": "b200"},
        {"walk_cycles": "many"},
        {"walk_cycles": True},
        {"walk_cycles": float("nan")},
        {"walkers": -1},
        {"tlb_l1_entries": 0},
        {"alignment_speed": 1.0},
        {"alignment_speed": {}},
    ],
)
def test_other_names_and_values_are_refused(wrong):
    with pytest.raises(ProfileError, match=f"{next(iter(wrong))}.*of h100_sxm"):
        memory_fit("h100_sxm", wrong)


def test_a_gpu_without_an_entry_borrows_everything():
    fit = memory_fit("b300_sxm")
    assert (fit.gpu, fit.measured, fit.dram_cycles) == ("b300_sxm", frozenset(), None)


def test_extremes_lie_on_either_side():
    fit = MEMORY_FITS["h200_sxm"]
    cheap, dear = fit.extremes()
    assert cheap.walkers > fit.walkers > dear.walkers
    assert cheap.walk_cycles < fit.walk_cycles < dear.walk_cycles
    assert cheap.tlb_l3_reach_bytes > fit.tlb_l3_reach_bytes > dear.tlb_l3_reach_bytes
    moved = {f.name for f in fields(fit) if getattr(cheap, f.name) != getattr(dear, f.name)}
    assert moved == {
        "tlb_l1_miss_cycles",
        "tlb_l2_miss_cycles",
        "tlb_l2_reach_bytes",
        "tlb_l3_reach_bytes",
        "walk_cycles",
        "walkers",
    }


def test_the_l2_holds_one_segment_of_what_all_read():
    gpu = GPUS["a100_sxm"]
    assert effective_bytes(gpu, "replicated") == 20 * 2**20
    assert effective_bytes(gpu, "private") == pytest.approx(32 * 2**20)
    assert effective_bytes(GPUS["l40s"], "replicated") == 96 * 2**20


def test_serving_is_cold_and_single_kernels_are_warm():
    gpu = GPUS["h100_sxm"]
    assert not stays_warm(gpu, 20e9)
    assert stays_warm(gpu, 30e6)
    assert warm_share(1e6, gpu) > 0.99
    assert warm_share(0.95 * gpu.l2_bytes, gpu) == pytest.approx(0.5)
    assert warm_share(2 * gpu.l2_bytes, gpu) < 0.01


def test_hits_of_unknown_latency_stay_unknown():
    assert hit_cycles(1e6, MEMORY_FITS["rtx_4090"], GPUS["rtx_4090"]) is None
    assert hit_cycles(1e6, MEMORY_FITS["b200_sxm"], GPUS["b200_sxm"]) == 295
    assert hit_cycles(1e8, MEMORY_FITS["b200_sxm"], GPUS["b200_sxm"]) is None


def test_paging_costs_a_table_and_one_wait():
    assert table_bytes(1000, 16) == 252
    fit, hz = MEMORY_FITS["h100_sxm"], GPUS["h100_sxm"].boost_hz
    kappa = least_kappa(300e-6, 64 * 500, fit, hz)
    assert kappa == pytest.approx(1 + (64 * 500 * 4 / 6.95e12 + 280 / hz) / 300e-6)
    assert 1 < kappa < 1.01
    assert least_kappa(300e-6, 1, MEMORY_FITS["rtx_4090"], hz) is None
