import pytest

from hwmodels.efficiency import EFFICIENCIES
from hwmodels.gpus import GPUS


def test_measured_parts_and_lenders():
    assert EFFICIENCIES["a100_sxm"].measured
    assert EFFICIENCIES["a100_sxm"].borrowed_from == ()
    assert EFFICIENCIES["h200_sxm"].borrowed_from == ("h100_sxm",)
    assert "h100_sxm" in EFFICIENCIES["b200_sxm"].borrowed_from
    for name in ("l40s", "rtx_4090", "rtx_pro_6000"):
        assert not EFFICIENCIES[name].measured
        assert "a100_sxm" in EFFICIENCIES[name].borrowed_from


def test_borrowed_prefill_bandwidth_stays_under_the_parts_own():
    for name in ("b200_sxm", "l40s", "rtx_4090", "rtx_pro_6000"):
        fit = EFFICIENCIES[name].prefill
        assert fit.query_bytes_per_s < GPUS[name].hbm_bytes_per_s
        assert fit.kv_write_bytes_per_s < GPUS[name].hbm_bytes_per_s


@pytest.mark.parametrize("name", GPUS)
def test_shares_are_shares(name):
    fits = EFFICIENCIES[name]
    for share in (fits.gemm.tensor, fits.gemm.memory, fits.prefill.tensor, fits.decode.memory):
        assert 0.3 < share < 1.0
    assert 0.5 < fits.stream < 1.0


def test_hopper_bandwidth_agrees_in_absolute_terms():
    """H100's and H200's prefill fits agree in bytes/s, not in their share of HBM."""
    h100, h200 = EFFICIENCIES["h100_sxm"].prefill, EFFICIENCIES["h200_sxm"].prefill
    assert h200.query_bytes_per_s == pytest.approx(h100.query_bytes_per_s, rel=0.05)
