"""A fit finds the numbers that made the rows it is shown."""

import math
from dataclasses import replace

import numpy as np
import pytest

from calibrate.accuracy.costs import NAMES, ServingCosts
from calibrate.accuracy.fit import Fitter, Free, values_of
from calibrate.accuracy.fitted import base_costs, group_name, held_out_costs, with_fit
from calibrate.accuracy.pool import PredictorPool
from calibrate.accuracy.rows import Row
from calibrate.accuracy.serving_fit import literal, rows_to_fit
from hwmodels.host import corrections_for, host_costs_for, prior_host_costs


def row(isl=1024, osl=64, concurrency=4, **more):
    values = {
        "row_id": f"r{isl}-{osl}-{concurrency}", "gpu": "h200_sxm", "engine": "vllm",
        "version": "0.16.0", "model": "meta-llama/Llama-3.1-8B", "precision": "", "gemm_quant": "",
        "isl": isl, "osl": osl, "concurrency": concurrency, "tp": 1, "pp": 1, "attention_dp": 1,
        "ep": 1, "exact": False, "ttft_s": 0.1, "tpot_s": 0.01, "where": "rows.csv:2",
    }  # fmt: skip
    return Row(**{**values, **more})


# The client's turnaround is left out: it shows only in which step a prompt falls into, so that few
# rows place it no better than by half.
TRUTH = {"gap_s": 1.5e-3, "decode": 1.3}
FREE = (Free("gap_s", 0.4e-3, 9.0), Free("decode", 1.0, 9.0))


@pytest.fixture(scope="module")
def measured():
    """Rows made by the twin itself under `TRUTH`."""
    asked = [
        row(isl, osl, clients)
        for isl, osl in ((256, 64), (2048, 48), (512, 160))
        for clients in (2, 8, 24)
    ]
    costs = base_costs()["vllm"].with_values(TRUTH)
    with PredictorPool(1) as pool:
        found = pool.predict([(r, costs) for r in asked])
    return [replace(p.row, ttft_s=p.ttft_s, tpot_s=p.tpot_s) for p in found]


def test_finds_the_numbers_behind_rows(measured):
    with PredictorPool(1) as pool:
        fit = Fitter(measured, base_costs(), FREE, pool).run(8)
    assert fit.loss[-1] < 0.05 * fit.loss[0]
    for name, value in TRUTH.items():
        assert fit.values[name] == pytest.approx(value, rel=0.25)


def test_numbers_of_an_engine_without_rows_stay(measured):
    free = (*FREE, Free("gap_s", 1.0, engine="sglang"))
    with PredictorPool(1) as pool:
        fit = Fitter(measured[:2], base_costs(), free, pool).run(2)
    assert fit.values["sglang.gap_s"] == 1.0
    assert fit.values["gap_s"] != FREE[0].start


def test_leaving_rows_out_does_not_read_them(measured):
    """Rows that are left out may say anything."""
    spoilt = [replace(r, tpot_s=3 * r.tpot_s) if r.concurrency == 24 else r for r in measured]
    keep = np.array([r.concurrency != 24 for r in measured])
    with PredictorPool(1) as pool:
        clean, bad = (Fitter(rows, base_costs(), FREE, pool) for rows in (measured, spoilt))
        start = np.array([math.log(TRUTH[free.name]) for free in FREE])
        first, second = clean.run(1, start), bad.run(0, start)
        second.jacobian = first.jacobian
        np.testing.assert_allclose(clean.without(first, keep), bad.without(second, keep), atol=0.02)


def test_a_row_that_cannot_be_predicted_does_not_count(measured):
    alien = row(gpu="h200_sxm", model="acme/Big-9T")
    with PredictorPool(1) as pool:
        fit = Fitter([*measured, alien], base_costs(), FREE, pool).run(1)
    assert np.isnan(fit.residuals[-2:]).all()
    assert all(math.isfinite(value) for value in fit.values.values())


def test_engines_factors_multiply_what_is_shared():
    free = (Free("gap_s", 1e-3), Free("gap_s", 1.0, engine="vllm"), Free("api_s", 2e-3))
    logs = np.log([2e-3, 3.0, 4e-3])
    assert values_of("vllm", free, logs) == pytest.approx({"gap_s": 6e-3, "api_s": 4e-3})
    assert values_of("sglang", free, logs) == pytest.approx({"gap_s": 2e-3, "api_s": 4e-3})


def test_costs_take_their_numbers():
    costs = ServingCosts(prior_host_costs("vllm")).with_values(
        {"step_s": 2e-3, "seq_s": 4e-6, "turnaround_s": 0.5, "decode": 1.4, "eager_op_s": 3e-6}
    )
    assert (costs.host.schedule_s, costs.host.update_s) == (1e-3, 1e-3)
    assert (costs.host.schedule_per_seq_s, costs.host.update_per_seq_s) == (2e-6, 2e-6)
    scales = costs.corrections.scales
    assert (costs.turnaround_s, scales.decode, costs.host.eager_op_s) == (0.5, 1.4, 3e-6)
    assert scales.gemm == costs.corrections.compute == 1.0


def test_committed_numbers_are_known_and_used():
    from hwmodels.serving_fits import SERVING_FITS

    values = SERVING_FITS["values"]
    assert {key.rpartition(".")[2] for key in values} <= set(NAMES)
    for engine in ("vllm", "sglang", "trtllm"):
        costs = with_fit(base_costs()[engine], engine, values)
        assert replace(costs.host, source="") == replace(
            host_costs_for(engine), source="", fitted=True
        )
        assert costs.corrections == corrections_for(engine)
    assert set(SERVING_FITS["left_out"]) == set(SERVING_FITS["groups"])


def test_groups_never_fitted_have_no_held_out_costs():
    fits = {"left_out": {"h200_sxm vllm meta-llama/Llama-3.1-8B": {"vllm.gap_s": 7e-3}}}
    assert held_out_costs(row(), fits).host.gap_s == 7e-3
    assert held_out_costs(row(gpu="h100_sxm"), fits) is None
    assert group_name(row()) == "h200_sxm vllm meta-llama/Llama-3.1-8B"


def test_only_calm_rows_of_dense_networks_are_fitted_on():
    rows = [row(concurrency=c) for c in (4, 8, 16, 32, 64, 128)]
    rows.append(row(model="openai/gpt-oss-120b"))
    assert [r.concurrency for r in rows_to_fit(rows)] == [4, 8, 16, 32, 64]
    assert [r.concurrency for r in rows_to_fit(rows, 3)] == [4, 16, 64]


def test_the_source_of_a_fit_is_python():
    fits = {"fitted_on": 'two "rows"', "groups": ["a b"], "values": {"x": 1e-5}, "left_out": {}}
    scope = {}
    exec(literal(fits), scope)
    assert scope["SERVING_FITS"] == fits
