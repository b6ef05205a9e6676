"""Fitting the physics forms to a profile's tables: robust least squares on log seconds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrate.collective_lines import all_lines
from hwmodels.attention import decode_cost, prefill_cost
from hwmodels.efficiency import DecodeFit, Efficiency, GemmFit, PrefillFit, efficiency_of
from hwmodels.gemm import gemm_cost
from hwmodels.given import gpu_of
from hwmodels.measured.fa2_decode import Fa2DecodeFit, fa2_decode_s
from hwmodels.measured.tables import variants
from hwmodels.ops import DecodeAttention, Gemm, PrefillAttention
from hwmodels.profile import HardwareProfile, Table
from hwmodels.spec import GpuSpec

SOFT_L1_SCALE = 0.1
MIN_ROWS = 20
"""Rows from which a form is fitted; it has up to nine parameters."""
_MAX_ROWS = {"gemm": 1200, "prefill": 1500, "decode": 2000}
_HARD_MAX = 30.0
"""A p-norm from here on is a maximum."""

# Parameters that a fit may move, and how far: (least, most).
_GEMM = {
    "t0_s": (0.2e-6, 10e-6),
    "tensor": (0.3, 1.0),
    "memory": (0.3, 1.0),
    "p_norm": (1.0, 40.0),
    "wave_s": (0.05e-6, 10e-6),
    "split_s": (0.1e-6, 20e-6),
    "l2_bytes_per_s": (1e12, 60e12),
    "saturation": (0.001, 1.0),
}
_PREFILL = {
    "t0_s": (1e-6, 50e-6),
    "query_bytes_per_s": (0.1e12, 10e12),
    "kv_write_bytes_per_s": (0.1e12, 10e12),
    "tensor": (0.1, 1.0),
    "narrow_head": (0.2, 1.2),
}
_DECODE = {
    "t0_s": (1e-6, 30e-6),
    "memory": (0.3, 1.0),
    "cta_s": (0.1e-6, 20e-6),
    "split_s": (0.05e-6, 20e-6),
    "p_norm": (1.0, 8.0),
    "per_query_head": (1e-5, 1.0),
    "warm_bytes_per_s": (2e12, 20e12),
    "warm_threshold": (0.6, 1.2),
}
_FA2_START = Fa2DecodeFit(8e-6, 0.74, 4e-6, 7e-6, 1.7, 0.01, 23e9, 7e-6, 4e12)
_FA2 = {
    "t0_s": (1e-6, 30e-6),
    "memory": (0.3, 1.0),
    "cta_s": (0.1e-6, 20e-6),
    "split_s": (0.05e-6, 20e-6),
    "p_norm": (1.0, 8.0),
    "per_query_head": (1e-5, 1.0),
    "cta_bytes_per_s": (5e9, 200e9),
    "copy_s": (0.05e-6, 20e-6),
    "warm_bytes_per_s": (2e12, 20e12),
}

Predict = Callable[[Any], NDArray[np.float64]]
"""Seconds of the chosen rows under a set of parameters."""


def fit_forms(profile: HardwareProfile, seed: int) -> dict[str, dict[str, Any]]:
    """Return fitted parameters of GEMM, prefill and decode, from the bf16 tables of a profile.

    A form whose tables are missing, or have fewer rows than `MIN_ROWS`, is left out.

    Args:
        profile: without the rows held out for judging.
        seed: draws the rows, if there are more than a fit needs.
    """
    gpu = gpu_of(profile)
    start = efficiency_of(gpu)
    random = np.random.default_rng(seed)
    fitted: dict[str, dict[str, Any]] = {}
    gemm = _fit_gemm(profile, gpu, start, random)
    if gemm is not None:
        fitted["gemm"] = gemm
    chunks, seconds = _prefill_rows(profile, random)
    if len(chunks) >= MIN_ROWS:
        fitted["prefill"], _ = _fit(
            start.prefill,
            _PREFILL,
            lambda fit: _each(lambda op: prefill_cost(op, fit, gpu).seconds, chunks),
            seconds,
        )
    tensor = float(fitted.get("prefill", {}).get("tensor", start.prefill.tensor))
    fitted.update(_fit_decode(profile, gpu, start, tensor, random))
    return fitted


def _fit_gemm(
    profile: HardwareProfile, gpu: GpuSpec, start: Efficiency, random: np.random.Generator
) -> dict[str, Any] | None:
    if "gemm.bf16" not in profile.tables:
        return None
    rows = _drawn([("bf16", profile.tables["gemm.bf16"])], "gemm", random)
    ops = [Gemm(int(r["m"]), int(r["n"]), int(r["k"])) for _, r in rows]
    moved = np.array([2.0 * (op.m * op.k + op.n * op.k + op.m * op.n) for op in ops])
    seconds = np.array([r["seconds"] for _, r in rows])
    # Faster than memory can: from the L2, which weights never are in serving.
    slow = np.flatnonzero(moved / seconds <= gpu.hbm_bytes_per_s).tolist()
    ops, seconds = [ops[i] for i in slow], seconds[slow]
    if len(ops) < MIN_ROWS:
        return None
    start_gemm = replace(start.gemm, p_norm=min(start.gemm.p_norm, 10.0))
    found, _ = _fit(
        start_gemm,
        _GEMM,
        lambda fit: _each(lambda op: gemm_cost(op, fit, gpu).seconds, ops),
        seconds,
    )
    return found


def _fit_decode(
    profile: HardwareProfile,
    gpu: GpuSpec,
    start: Efficiency,
    tensor: float,
    random: np.random.Generator,
) -> dict[str, dict[str, Any]]:
    """The general form, and FlashAttention-2's where it fits an Ampere part better.

    Tables of a cold L2 say nothing of a warm one: those two parameters then come from the
    table that was measured warm, if there is one.
    """
    batches, seconds = _decode_rows(profile, "decode", random)
    if len(batches) < MIN_ROWS:
        return {}
    warm = profile.facts.get("decode_l2", "warm") == "warm"
    bounds = {n: b for n, b in _DECODE.items() if warm or not n.startswith("warm_")}

    def predict(fit: DecodeFit) -> NDArray[np.float64]:
        return _each(lambda op: decode_cost(op, fit, gpu, tensor, l2_warm=warm).seconds, batches)

    general, loss = _fit(start.decode, bounds, predict, seconds)
    found = {"decode": general}
    if gpu.architecture == "ampere":
        fa2_bounds = {n: b for n, b in _FA2.items() if warm or not n.startswith("warm_")}
        own, own_loss = _fit(
            _FA2_START,
            fa2_bounds,
            lambda fit: _each(lambda op: fa2_decode_s(op, fit, gpu, l2_warm=warm), batches),
            seconds,
        )
        if own_loss < loss:
            found["decode_fa2"] = {**asdict(_FA2_START), **own}
    resident, warm_s = _decode_rows(profile, "decode_warm", random)
    if not warm and len(resident) >= MIN_ROWS:
        cold_fit = replace(start.decode, **general)

        def predict_warm(fit: DecodeFit) -> NDArray[np.float64]:
            return _each(
                lambda op: decode_cost(op, fit, gpu, tensor, l2_warm=True).seconds, resident
            )

        warm_bounds = {n: b for n, b in _DECODE.items() if n.startswith("warm_")}
        general.update(_fit(cold_fit, warm_bounds, predict_warm, warm_s)[0])
    return found


def _each(price: Callable[[Any], float], ops: Sequence[Any]) -> NDArray[np.float64]:
    return np.array([price(op) for op in ops])


def _prefill_rows(
    profile: HardwareProfile, random: np.random.Generator
) -> tuple[list[PrefillAttention], NDArray[np.float64]]:
    names = [name for name in ("128.bf16", "64.bf16") if f"prefill.{name}" in profile.tables]
    tables = [(name, profile.tables[f"prefill.{name}"]) for name in names]
    rows = _drawn(tables, "prefill", random)
    ops = []
    for name, row in rows:
        dim, length, batch = int(name.partition(".")[0]), int(row["length"]), int(row["batch"])
        heads, kv_heads = int(row["heads"]) * batch, int(row["kv_heads"]) * batch
        ops.append(PrefillAttention(length, length, heads, kv_heads, dim, dim))
    return ops, np.array([row["seconds"] for _, row in rows])


def _decode_rows(
    profile: HardwareProfile, kernel: str, random: np.random.Generator
) -> tuple[list[DecodeAttention], NDArray[np.float64]]:
    known = variants(profile.tables, kernel)
    names = [name for name in ("128.bf16", "64.bf16") if name in known]
    rows = _drawn([(n, profile.tables[f"{kernel}.{n}"]) for n in names], "decode", random)
    ops = []
    for name, row in rows:
        dim, length, batch = int(name.partition(".")[0]), int(row["length"]), int(row["batch"])
        heads, kv_heads = int(row["heads"]), int(row["kv_heads"])
        width = 4.0 * kv_heads * dim
        ops.append(DecodeAttention(batch, batch * length, length, heads, kv_heads, dim, dim, width))
    return ops, np.array([row["seconds"] for _, row in rows])


def _drawn(
    tables: Sequence[tuple[str, Table]], kernel: str, random: np.random.Generator
) -> list[tuple[str, dict[str, Any]]]:
    rows = [
        (name, dict(zip(table, values, strict=True)))
        for name, table in tables
        for values in zip(*(column.tolist() for column in table.values()), strict=True)
    ]
    most = _MAX_ROWS[kernel]
    if len(rows) <= most:
        return rows
    return [rows[i] for i in random.choice(len(rows), most, replace=False).tolist()]


def _fit(
    start: GemmFit | PrefillFit | DecodeFit | Fa2DecodeFit,
    bounds: Mapping[str, tuple[float, float]],
    predict: Predict,
    seconds: NDArray[np.float64],
) -> tuple[dict[str, Any], float]:
    """Return the parameters whose log seconds lie closest, soft-L1, and that loss."""
    from scipy.optimize import least_squares

    names, measured = list(bounds), np.log(seconds)
    low, high = (np.log([bounds[name][side] for name in names]) for side in (0, 1))
    first = np.clip(np.log([getattr(start, name) for name in names]), low + 1e-6, high - 1e-6)

    def residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        fit = replace(start, **dict(zip(names, np.exp(logs).tolist(), strict=True)))
        differences: NDArray[np.float64] = np.log(predict(fit)) - measured
        return differences

    found = least_squares(
        residuals, first, bounds=(low, high), loss="soft_l1", f_scale=SOFT_L1_SCALE,
        diff_step=1e-3, max_nfev=25,
    )  # fmt: skip
    values: dict[str, Any] = {
        name: float(f"{value:.4g}") for name, value in zip(names, np.exp(found.x), strict=True)
    }
    if isinstance(start, GemmFit) and values["p_norm"] >= _HARD_MAX:
        values["p_norm"] = None  # JSON has no infinity
    return values, float(found.cost)


def with_fits(profile: HardwareProfile, training: HardwareProfile, seed: int) -> HardwareProfile:
    """Return `profile` with forms fitted on `training` and collective lines on all its rows.

    The forms have a handful of parameters and never see the rows held out; the lines are the model
    itself, so judging refits them (`calibrate.holdout`).
    """
    forms = fit_forms(training, seed)
    lines = all_lines(profile)
    parameters = {**profile.parameters, **forms, **({"collectives": lines} if lines else {})}
    fitted_on = f"bf16 tables of this profile without the held-out rows (seed {seed})"
    provenance = replace(profile.provenance, fitted_on=fitted_on if forms else "nothing")
    return replace(profile, parameters=parameters, provenance=provenance)
