"""Forecasts set against measured closed-loop rows."""

import csv
from pathlib import Path
from typing import Any

from twin.engine import simulate
from twin.load import scenario_from
from twin.report.metrics import summarise

KV_DTYPES = ("auto", "fp8")


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

    scenario = scenario_from(
        {
            "schema_version": 1,
            "name": row["id"],
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
        }
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
