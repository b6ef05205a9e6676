from dataclasses import replace

import numpy as np
import pytest

from app.answers.hardware.calibration import (
    FIT,
    MEASURE,
    all_calibrations,
    calibration_of,
    measure_commands,
    table_rows,
)
from app.answers.hardware.collectives import KINDS, collectives_of
from app.answers.hardware.footprint import extremes, footprint_of, latency_curve
from app.answers.hardware.kernels import TABLES, held_out_points, kernels_of
from app.answers.hardware.layout import layout_answer
from app.answers.hardware.operations import named_ops, priced_steps, shares_by_bound
from app.answers.hardware.roofline import roofline_of
from app.answers.hardware.typical import typical_of
from app.answers.setup import Setup
from hwmodels.gpus import GPUS
from hwmodels.memory.fits import MEMORY_FITS, memory_fit
from hwmodels.ops import Collective, Gemm
from hwmodels.profile import find_shipped, measured_points, open_profile, read_profile
from twin.engine.engines import engine_costs

CHAT = Setup("chat-h100")
TP4 = Setup("llama70b-fp8-tp4-h100")


def _on(gpu, **changes):
    shorter = {"policy.max_model_len": 8192}
    return Setup("chat-h100", changes={"gpu": gpu, **shorter, **changes})


def test_the_first_line_tells_what_the_profile_stores():
    found = calibration_of(CHAT.scenario())
    profile = open_profile(find_shipped("h100_sxm", "vllm"))
    assert found.state == "kernels"
    assert found.points == sum(len(table["seconds"]) for table in profile.tables.values())
    gemm = profile.held_out["gemm"]
    assert found.errors["gemm"] == (gemm.median_pct, gemm.p90_pct)
    assert f"{found.points:,} measured points" in found.sentence()
    assert f"under vllm {profile.engine_version}, data of {profile.provenance.date}." in (
        found.sentence()
    )
    assert "gemm 2.6 / 9.7" in found.error_sentence()


def test_a_gpu_without_measurements_says_how_to_get_them():
    found = calibration_of(_on("b200_sxm").scenario())
    assert (found.state, found.points) == ("published", 0)
    assert found.sentence().endswith(f"published figures. Run `{MEASURE}` on it.")
    assert found.error_sentence() == "Held-out error unknown."
    commands = measure_commands("twin simulate chat-h100").splitlines()
    assert commands == [MEASURE, FIT, "twin simulate chat-h100 --set profile=mine.npz"]


def test_measured_layers_and_another_engines_kernels_are_told():
    layers = calibration_of(_on("rtx_4090").scenario())
    assert layers.state == "layers"
    assert layers.notes == ("of llama-3.1-8b alone",)
    other = calibration_of(_on("h200_sxm", **{"engine.name": "sglang"}).scenario())
    assert other.engine.startswith("sglang ")


def test_every_gpu_has_its_lines():
    rows = table_rows(all_calibrations())
    assert {row["GPU"] for row in rows} == {gpu.title for gpu in GPUS.values()}
    states = {row["GPU"]: row["state"] for row in rows}
    assert states[GPUS["b200_sxm"].title] == "not calibrated"
    assert states[GPUS["h100_sxm"].title] == "kernels measured"


def test_points_are_counted_without_unpacking():
    path = find_shipped("a100_sxm", "vllm")
    assert measured_points(open_profile(path)) == measured_points(read_profile(path)) > 0


def test_typical_steps_follow_forecast_and_requests():
    scenario = CHAT.scenario()
    seed = np.random.SeedSequence(scenario.file.seed)
    requests = scenario.workload.source(seed, scenario.policy.max_model_len).start()
    steps = [
        one.prompt_tokens + (token + 0.5) for one in requests for token in range(one.output_tokens)
    ]
    found = typical_of(scenario, 31.6)
    assert found.decode_seqs == 32
    assert found.context_tokens == pytest.approx(np.mean(steps), abs=1)
    assert found.chunk_tokens == round(float(np.median([one.prompt_tokens for one in requests])))
    assert typical_of(scenario, None).decode_seqs == 1
    capped = Setup("chat-h100", changes={"policy.max_num_batched_tokens": 512}).scenario()
    assert typical_of(capped, 1.0).chunk_tokens == 512


@pytest.mark.parametrize("llm", ["llama-3.1-8b", "mixtral-8x7b", "deepseek-v3", "qwen3-30b-a3b"])
def test_every_operation_of_a_network_has_a_name_of_its_own(llm):
    changes = {"llm": llm, "parallelism.tp": 8, "gpu": "h200_sxm"}
    scenario = Setup("llama70b-fp8-tp4-h100", changes=changes).scenario()
    for shape in (typical_of(scenario, 8.0).decode, typical_of(scenario, 8.0).prefill):
        named = named_ops(scenario, shape)
        products = [name for name, op in named if isinstance(op, Gemm)]
        assert len(products) == len(set(products))
        assert products[-1] == "output head"
        heads = [op for name, op in named if name == "output head"]
        assert heads[0].n * 8 >= scenario.arch.vocab_size
        outs = [op for name, op in named if name == "attention out"]
        assert outs[0].n == scenario.arch.hidden_size


def test_steps_are_priced_as_forecasts_are():
    scenario = TP4.scenario()
    typical = typical_of(scenario, 20.0)
    decode, prefill = priced_steps(scenario, typical)
    model = engine_costs(scenario).cost_model
    for ops, shape in ((decode, typical.decode), (prefill, typical.prefill)):
        total = sum(model.cost(op).seconds for _, op in named_ops(scenario, shape))
        assert sum(op.seconds for op in ops) == pytest.approx(total)
        assert sum(share for _, share in shares_by_bound(ops)) == pytest.approx(1.0)
    assert {op.path for op in decode} >= {"fp8", "bf16"}


def test_the_roofline_says_what_decode_is_bound_by():
    answer = roofline_of(CHAT, 32.0)
    assert answer.sentence.startswith("Decode at batch 32 is bound by HBM (")
    assert "A prefill chunk of 891 tokens: tensor-core compute (" in answer.sentence
    gpu = GPUS["h100_sxm"]
    for row in answer.rows:
        if row["TFLOP/s"] is not None:
            assert row["TFLOP/s"] * 1e12 <= gpu.flops_per_s[row["tensor cores"]]
    names = {row["name"] for row in answer.chart.rows if row["line"] == "point"}
    assert {"decode of 32", "prefill of 891", "gate+up", "attention"} <= names


def test_without_tables_every_operation_is_hollow():
    points = [row for row in roofline_of(_on("b200_sxm"), 8.0).chart.rows if "measured" in row]
    assert points
    assert not any(row["measured"] for row in points)
    assert "whole measured layers" in roofline_of(_on("rtx_4090"), 8.0).notes[0]


def test_held_out_rows_are_priced_by_what_is_left():
    profile = open_profile(find_shipped("a100_sxm", "vllm"))
    points = held_out_points(profile, GPUS["a100_sxm"])
    assert {one.family for one in points} == {
        family for family, names in TABLES.items() if any(n in profile.tables for n in names)
    }
    gemm = [one for one in points if one.family == "gemm"]
    # A row that its table still held would be priced at what was measured.
    assert sum(one.modelled_s == pytest.approx(one.measured_s, rel=1e-9) for one in gemm) < 3
    table = dict(profile.tables["gemm.bf16"])
    table["seconds"] = 2 * table["seconds"]
    doubled = replace(profile, tables={"gemm.bf16": table})
    ratios = [one.modelled_s / one.measured_s for one in held_out_points(doubled, GPUS["a100_sxm"])]
    assert 0.9 < float(np.median(ratios)) < 1.1


def test_without_kernels_there_is_nothing_to_compare():
    answer = kernels_of(_on("b200_sxm"))
    assert (answer.profile, answer.errors, answer.scatter.spec) == ("", [], {})


def test_latency_climbs_from_l2_to_dram_to_walks_within_its_band():
    gpu, fit = GPUS["h100_sxm"], memory_fit("h100_sxm")
    line = [one for one in latency_curve(fit, gpu) if one.pattern == "a load a line"]
    assert line[0].ns == pytest.approx(1e9 * fit.l2_near_cycles / gpu.boost_hz)
    assert line[-1].ns > 1e9 * (fit.dram_cycles + fit.walk_cycles) / gpu.boost_hz
    assert all(one.low_ns <= one.ns <= one.high_ns for one in line)
    quick, slow = extremes(fit)
    assert (quick.dram_cycles, slow.dram_cycles) == fit.intervals["dram_cycles"]


def test_unknown_latencies_are_said_not_drawn():
    assert MEMORY_FITS["rtx_4090"].dram_cycles is None
    answer = footprint_of(_on("rtx_4090"))
    assert answer.chart.spec == {}
    assert "unknown: L2, near segment" in answer.sentence
    assert all(row["source"] for row in footprint_of(CHAT).constants)


def test_sizes_that_a_setup_uses_are_marked():
    answer = collectives_of(TP4, "all_reduce", 20.0)
    used = [row for row in answer.chart.rows if row["kind"] == "used"]
    scenario = TP4.scenario()
    ops = [op for _, op in named_ops(scenario, typical_of(scenario, 20.0).decode)]
    decode = next(op for op in ops if isinstance(op, Collective) and op.kind == "all_reduce")
    assert used[0]["bytes"] == pytest.approx(decode.num_bytes, rel=1e-5)
    assert used[0]["ranks"] == 4
    assert "Steps of this setup (tp 4) wait for: all-reduce of" in answer.sentence
    assert "uses a collective" in collectives_of(CHAT, "all_reduce", 20.0).sentence


def test_pipeline_stages_send_and_receive():
    setup = Setup("chat-h100", changes={"parallelism.pp": 2})
    answer = collectives_of(setup, "send_recv", 4.0)
    used = [row for row in answer.chart.rows if row["kind"] == "used"]
    assert used[0]["bytes"] == 4 * 4096 * 2 * 2
    assert "(tp 1, pp 2)" in answer.sentence


@pytest.mark.parametrize("kind", KINDS)
def test_more_bytes_never_take_less_beyond_the_jump_of_the_engines_kernel(kind):
    rows = collectives_of(_on("b200_sxm"), kind, 4.0).chart.rows
    for ranks in {row["ranks"] for row in rows}:
        times = [r["us"] for r in rows if r["ranks"] == ranks and r["bytes"] >= 2**24]
        assert times == sorted(times)


def test_the_kv_layout_is_that_of_twin_memory():
    answer = layout_answer(CHAT)
    assert len(answer.sizes) == len(answer.steps) == 24
    assert answer.facts[-1].startswith("Fewest bytes from DRAM")
    assert answer.chart.name == "kv_bytes"
