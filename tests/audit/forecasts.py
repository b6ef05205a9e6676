"""Forecasts set against measurements: the vLLM run on an RTX 4090, and closed-loop rows."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from hwmodels.host import host_costs_for
from twin.engine import simulate
from twin.load.resolve import resolve_scenario
from twin.report.latencies import request_latencies
from twin.report.metrics import summarise
from twin.scenario import ScenarioFile

RUN = "rtx4090-llama-3.1-8b"
KV_DTYPES = ("auto", "fp8")


def scenario_of(data: dict[str, Any], where: str) -> Any:
    """Return the scenario that plain data describe."""
    file = TypeAdapter(ScenarioFile).validate_python({"schema_version": 1, **data})
    return resolve_scenario(file, Path.cwd(), where=where)


def spread(values: Any) -> dict[str, float]:
    """Return mean and percentiles of the finite values."""
    finite = np.asarray(values, dtype=float)
    finite = finite[np.isfinite(finite)]
    p50, p90, p99 = np.percentile(finite, (50, 90, 99)).tolist()
    return {"mean": float(finite.mean()), "p50": p50, "p90": p90, "p99": p99}


def measured_run(folder: Path) -> dict[str, dict[str, float]]:
    """Return TTFT, TPOT and E2E of a recorded run, on the engine core's clock."""
    rows = [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]
    names = ("queued_ts", "first_token_ts", "last_token_ts")
    queued, first, last = (np.array([row[name] for row in rows]) for name in names)
    gaps = np.array([row["output_toks"] for row in rows]) - 1.0
    tpot = (last - first)[gaps > 0] / gaps[gaps > 0]
    return {"ttft": spread(first - queued), "tpot": spread(tpot), "e2e": spread(last - queued)}


def forecast_run(folder: Path, num_gpu_blocks: int | None) -> dict[str, Any]:
    """Return the same of a forecast; `num_gpu_blocks` None: what the capacity model computes.

    The recorded run starts its clock when the engine core queues a request, so the API's share
    is taken off here.
    """
    meta = json.loads((folder / "meta.json").read_text())
    flags = meta["engine_kwargs"]
    names = ("max_num_seqs", "max_num_batched_tokens", "max_model_len")
    scenario = scenario_of(
        {
            "llm": "llama-3.1-8b",
            "gpu": "rtx_4090",
            "engine": {"name": "vllm", "version": meta["vllm_version"]},
            "policy": {**{name: flags[name] for name in names}, "num_gpu_blocks": num_gpu_blocks},
            "workload": {"kind": "trace", "path": str(folder / "trace.jsonl")},
        },
        RUN,
    )
    result = simulate(scenario)
    api_s = host_costs_for("vllm", meta["vllm_version"]).api_s
    found = request_latencies(result.requests)
    return {
        "blocks": scenario.num_gpu_blocks,
        "finished": int((result.requests.outcome == 0).sum()),
        "preemptions": int(result.requests.preemptions.sum()),
        "ttft": spread(found.ttft_s - api_s),
        "tpot": spread(found.tpot_s),
        "e2e": spread(found.e2e_s - api_s),
    }


def vllm_run(data: Path) -> dict[str, Any]:
    """Return the recorded run and its two forecasts."""
    folder = data / "vllm_runs" / RUN
    logged = json.loads((folder / "meta.json").read_text())["kv_cache"]["num_gpu_blocks"]
    return {
        "measured": {"blocks": logged, **measured_run(folder)},
        "logged": forecast_run(folder, logged),
        "computed": forecast_run(folder, None),
    }


def dense_vllm_rows(data: Path) -> list[dict[str, str]]:
    """Return the closed-loop rows of vLLM and a dense network."""
    with (data / "silicon" / "hopper_serving_dev.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    wanted = {"engine": "vllm", "model": "meta-llama/Llama-3.1-70B"}
    return [row for row in rows if wanted.items() <= row.items()]


def forecast_row(row: dict[str, str], kv_cache_dtype: str) -> dict[str, Any]:
    """Return measured and forecast mean TTFT and TPOT of a row, seconds."""
    isl, osl, concurrency = (int(row[name]) for name in ("isl", "osl", "concurrency"))

    def length(most: int) -> dict[str, Any]:
        return {"kind": "uniform", "low": round(0.8 * most), "high": most}

    scenario = scenario_of(
        {
            "llm": "llama-3.1-70b-fp8",
            "gpu": row["gpu"],
            "engine": {"name": "vllm"},
            "parallelism": {"tp": int(row["tp"])},
            "policy": {
                "max_model_len": isl + osl,
                "enable_prefix_caching": False,
                "kv_cache_dtype": kv_cache_dtype,
            },
            "workload": {
                "kind": "closed_loop",
                "concurrency": concurrency,
                "num_requests": 10 * concurrency,
                "prompt_tokens": length(isl),
                "output_tokens": length(osl),
            },
        },
        row["id"],
    )
    figures = summarise(simulate(scenario))
    return {
        **{name: int(row[name]) for name in ("isl", "osl", "concurrency", "tp")},
        "kv_cache_dtype": kv_cache_dtype,
        "finished": figures["finished"],
        "waiting": figures["waiting"]["mean"],
        "preemptions": figures["preemptions"],
        "kv_usage": figures["kv_cache_usage"]["max"],
        "ttft_s": [float(row["ttft_ms"]) / 1e3, figures["ttft_s"]["mean"]],
        "tpot_s": [float(row["tpot_ms"]) / 1e3, figures["tpot_s"]["mean"]],
    }


def closed_loop(data: Path) -> list[dict[str, Any]]:
    """Return every row with each KV dtype."""
    rows = dense_vllm_rows(data)
    return [forecast_row(row, dtype) for dtype in KV_DTYPES for row in rows]
