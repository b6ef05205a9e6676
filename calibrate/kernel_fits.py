"""Fitting the physics forms to a profile's tables: robust least squares on log seconds."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hwmodels.attention import decode_cost, prefill_cost
from hwmodels.efficiency import EFFICIENCIES, DecodeFit, GemmFit, PrefillFit
from hwmodels.gemm import gemm_cost
from hwmodels.gpus import GPUS
from hwmodels.measured.fa2_decode import Fa2DecodeFit, fa2_decode_s
from hwmodels.measured.tables import variants
from hwmodels.ops import DecodeAttention, Gemm, PrefillAttention
from hwmodels.profile import HardwareProfile, Table

SOFT_L1_SCALE = 0.1
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

    Args:
        profile: without the rows held out for judging.
        seed: draws the rows, if there are more than a fit needs.
    """
    gpu, start = GPUS[profile.gpu], EFFICIENCIES[profile.gpu]
    random = np.random.default_rng(seed)
    fitted: dict[str, dict[str, Any]] = {}
    rows = _drawn([("bf16", profile.tables["gemm.bf16"])], "gemm", random)
    ops = [Gemm(int(r["m"]), int(r["n"]), int(r["k"])) for _, r in rows]
    moved = np.array([2.0 * (op.m * op.k + op.n * op.k + op.m * op.n) for op in ops])
    seconds = np.array([r["seconds"] for _, r in rows])
    # Faster than memory can: from the L2, which weights never are in serving.
    slow = np.flatnonzero(moved / seconds <= gpu.hbm_bytes_per_s).tolist()
    ops, seconds = [ops[i] for i in slow], seconds[slow]
    start_gemm = replace(start.gemm, p_norm=min(start.gemm.p_norm, 10.0))
    fitted["gemm"], _ = _fit(
        start_gemm,
        _GEMM,
        lambda fit: _each(lambda op: gemm_cost(op, fit, gpu).seconds, ops),
        seconds,
    )
    chunks, seconds = _prefill_rows(profile, random)
    fitted["prefill"], _ = _fit(
        start.prefill,
        _PREFILL,
        lambda fit: _each(lambda op: prefill_cost(op, fit, gpu).seconds, chunks),
        seconds,
    )
    batches, seconds = _decode_rows(profile, random)
    tensor = float(fitted["prefill"]["tensor"])
    general, loss = _fit(
        start.decode,
        _DECODE,
        lambda fit: _each(
            lambda op: decode_cost(op, fit, gpu, tensor, l2_warm=True).seconds, batches
        ),
        seconds,
    )
    fitted["decode"] = general
    if gpu.architecture == "ampere":
        own, own_loss = _fit(
            _FA2_START,
            _FA2,
            lambda fit: _each(lambda op: fa2_decode_s(op, fit, gpu, l2_warm=True), batches),
            seconds,
        )
        if own_loss < loss:
            fitted["decode_fa2"] = own
    return fitted


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
    profile: HardwareProfile, random: np.random.Generator
) -> tuple[list[DecodeAttention], NDArray[np.float64]]:
    known = variants(profile.tables, "decode")
    names = [name for name in ("128.bf16", "64.bf16") if name in known]
    rows = _drawn([(n, profile.tables[f"decode.{n}"]) for n in names], "decode", random)
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


def fit_lines(table: Table, ranks: int) -> list[list[float]]:
    """Return three lines (microseconds, GB/s) whose minimum fits a collective's table.

    Robust: a few published rows are slower at a smaller message than at a larger one.
    """
    from scipy.optimize import least_squares

    mine = table["ranks"] == ranks
    sizes = table["bytes"][mine].astype(np.float64)
    micros = table["seconds"][mine].astype(np.float64) * 1e6
    order = np.argsort(sizes)
    sizes, micros = sizes[order], micros[order]

    def times(logs: NDArray[np.float64], at: NDArray[np.float64]) -> NDArray[np.float64]:
        lines = np.exp(logs.reshape(3, 2))
        each = lines[:, :1] + at[None, :] / (lines[:, 1:] * 1e3)
        lowest: NDArray[np.float64] = each.min(axis=0)
        return lowest

    best = None
    for first_knee, second_knee in ((0.2, 0.6), (0.3, 0.7), (0.4, 0.8), (0.15, 0.5)):
        start = _starting_lines(sizes, micros, (first_knee, second_knee))
        found = least_squares(
            lambda logs: np.log(times(logs, sizes) / micros),
            start,
            loss="soft_l1",
            f_scale=0.05,
            max_nfev=250,
        )
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None  # noqa: S101  four starts were tried
    lines = np.exp(best.x.reshape(3, 2)).tolist()
    return [[float(f"{a:.4g}"), float(f"{b:.4g}")] for a, b in sorted(lines)]


def _starting_lines(
    sizes: NDArray[np.float64], micros: NDArray[np.float64], knees: tuple[float, float]
) -> NDArray[np.float64]:
    """Lines through the parts of the curve that two knees divide it into."""
    count, lines = len(sizes), []
    edges = [0, round(knees[0] * count), round(knees[1] * count), count]
    for start, end in pairwise(edges):
        part = slice(max(0, min(start, count - 2)), max(end, start + 2))
        x, y = sizes[part], micros[part]
        slope = max((y[-1] - y[0]) / (x[-1] - x[0]), 1e-9)
        base = max(y[0] - slope * x[0], 1.0)
        lines.append((math.log(base), math.log(1 / slope / 1e3)))
    return np.array(lines).reshape(-1)


def with_fits(profile: HardwareProfile, training: HardwareProfile, seed: int) -> HardwareProfile:
    """Return `profile` with forms fitted on `training` and collective lines on all its rows.

    The forms have a handful of parameters and never see the rows held out; the lines are the model
    itself, so judging refits them (`calibrate.holdout`).
    """
    parameters = {
        **profile.parameters,
        **fit_forms(training, seed),
        "collectives": all_lines(profile),
    }
    provenance = replace(
        profile.provenance,
        fitted_on=f"bf16 tables of this profile without the held-out rows (seed {seed})",
    )
    return replace(profile, parameters=parameters, provenance=provenance)


def all_lines(profile: HardwareProfile) -> dict[str, list[list[float]]]:
    """Return the lines of every NCCL curve, by `kind/ranks`."""
    lines = {}
    for kind in variants(profile.tables, "nccl"):
        table = profile.tables[f"nccl.{kind}"]
        for ranks in np.unique(table["ranks"]).tolist():
            lines[f"{kind}/{ranks}"] = fit_lines(table, ranks)
    return lines
