"""Layer profiles of LLMServingSim: a folder of CSV files becomes a `HardwareProfile`.

`dense.csv` (layer, tokens), `per_sequence.csv` (layer, sequences), `attention.csv`
(prefill_chunk, kv_prefill, n_decode, kv_decode), for networks with experts `moe.csv` (tokens,
activated_experts), and `skew_fit.csv`; microseconds of one decoder layer on one rank, taken
without CUDA graphs. `meta.yaml` says on what. Several tensor-parallel sizes stand in `tp1`,
`tp2` …; a folder without those holds one.
"""

import csv
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from hwmodels.profile import Column, HardwareProfile, Provenance, Table
from twin.errors import InputError
from twin.llm.models import MODELS
from twin.load.documents import read_text
from twin.naming import remedy_for

SOURCE = "LLMServingSim 2.0 layer profile"
LICENCE = "MIT"

_MAX_ROWS = 2_000_000
_MICROSECOND = 1e-6
_GPUS = {
    "rtx4090": "rtx_4090",
    "rtxpro6000": "rtx_pro_6000",
    "h100": "h100_sxm",
    "h200": "h200_sxm",
    "a100": "a100_sxm",
    "l40s": "l40s",
    "b200": "b200_sxm",
}
# Fine-tunes of one network have its layers: what a published name may carry after it.
_VARIANT = re.compile(r"-(instruct|chat|base|it|hf|thinking|\d{4})$")


@dataclass(frozen=True, slots=True)
class _File:
    """One CSV file: its columns in order, how each reads, and its name in the profile."""

    table: str
    columns: Mapping[str, tuple[str, Callable[[str], Any]]]
    required: bool = True


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


def _seconds(text: str) -> float:
    value = float(text) * _MICROSECOND
    if not (math.isfinite(value) and value > 0):
        raise ValueError
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


_TIME = {"time_us": ("seconds", _seconds)}
FILES: Mapping[str, _File] = {
    "dense.csv": _File("dense", {"layer": ("layer", str), "tokens": ("tokens", _count), **_TIME}),
    "per_sequence.csv": _File(
        "per_sequence", {"layer": ("layer", str), "sequences": ("sequences", _count), **_TIME}
    ),
    "attention.csv": _File(
        "attention",
        {
            "prefill_chunk": ("prefill_chunk", _count),
            "kv_prefill": ("kv_prefill", _count),
            "n_decode": ("n_decode", _count),
            "kv_decode": ("kv_decode", _count),
            **_TIME,
        },
    ),
    "moe.csv": _File(
        "moe",
        {
            "tokens": ("tokens", _count),
            "activated_experts": ("activated_experts", _count),
            **_TIME,
        },
        required=False,
    ),
    "skew_fit.csv": _File(
        "skew",
        {
            "pc": ("prefill_chunk", _count),
            "n_label": ("sequences", str),
            "skew_rate_label": ("share", str),
            "kv_big_label": ("longest", str),
            "kp_label": ("history", str),
            "alpha": ("alpha", _finite),
        },
        required=False,
    ),
}


def read_layer_profile(folder: Path, tp: int = 1) -> HardwareProfile:
    """Return the profile in a folder, for ranks of tensor parallelism `tp`.

    Raises:
        InputError: a file is missing or damaged, or its GPU or network is not known.
    """
    meta_file = folder / "meta.yaml"
    meta = _meta(meta_file)
    _check_tp(meta, tp, meta_file)
    tables_folder = folder / f"tp{tp}" if (folder / f"tp{tp}").is_dir() else folder
    tables = {
        file.table: _read_csv(tables_folder / name, file)
        for name, file in FILES.items()
        if file.required or (tables_folder / name).is_file()
    }
    if not _skew_enabled(meta):
        tables.pop("skew", None)
    gpu, version = _gpu(meta, meta_file), str(_need(meta, "vllm_version", meta_file))
    model = str(_need(meta, "model", meta_file))
    return HardwareProfile(
        name=f"{gpu}-vllm-{version}",
        gpu=gpu,
        engine="vllm",
        engine_version=version,
        kind="layers",
        provenance=Provenance(
            source=f"{SOURCE} of {meta.get('gpu', gpu)}, {model}",
            licence=LICENCE,
            date=str(meta.get("profiled_at", ""))[:10],
            versions={
                "vllm": version,
                "cuda": str(meta.get("cuda_version", "")),
                "profiler": str(meta.get("profiler_version", "")),
            },
            notes=("One decoder layer, kernel times without CUDA graphs and without compilation.",),
        ),
        tables=tables,
        facts={
            "llm": network_of(model, str(meta_file)),
            "model": model,
            "variant": str(meta.get("variant", "bf16")),
            "tp": tp,
            "skew_default": _skew_default(meta, tp),
        },
    )


def network_of(model: str, where: str) -> str:
    """Return the built-in network that a published model name stands for.

    Raises:
        InputError: none does.
    """
    name = plain = model.rsplit("/", 1)[-1].lower()
    while name not in MODELS:
        shorter = _VARIANT.sub("", name)
        if shorter == name:
            raise InputError(
                f"unknown network {model!r}", where=where, remedy=remedy_for(plain, MODELS)
            )
        name = shorter
    return name


def _meta(path: Path) -> Mapping[str, Any]:
    try:
        # Not the project's strict reader: the profiler writes numbers as keys.
        meta = yaml.safe_load(read_text(path, "layer profile"))
    except yaml.YAMLError as error:
        raise InputError(f"is not valid YAML: {error}", where=str(path)) from None
    if not isinstance(meta, dict):
        raise InputError("is not a mapping", where=str(path), remedy="give the profiler's own file")
    return meta


def _gpu(meta: Mapping[str, Any], where: Path) -> str:
    label = re.sub(r"[^a-z0-9]", "", str(_need(meta, "hardware", where)).lower())
    if label not in _GPUS:
        raise InputError(
            f"unknown hardware {meta['hardware']!r}",
            where=str(where),
            remedy=remedy_for(label, _GPUS),
        )
    return _GPUS[label]


def _need(meta: Mapping[str, Any], key: str, where: Path) -> Any:
    if meta.get(key) in (None, ""):
        raise InputError(f"has no {key}", where=str(where), remedy="give the profiler's own file")
    return meta[key]


def _check_tp(meta: Mapping[str, Any], tp: int, where: Path) -> None:
    known = meta.get("tp_degrees")
    if isinstance(known, list) and known and tp not in known:
        raise InputError(
            f"was not taken for tensor parallelism {tp}",
            where=str(where),
            remedy="it holds " + ", ".join(str(size) for size in known),
        )


def _skew_enabled(meta: Mapping[str, Any]) -> bool:
    """Whether the authors use their correction for uneven decodes on this GPU.

    A folder whose `meta.yaml` switches it off may still hold a table, of another card.
    """
    fit = meta.get("skew_fit")
    return not isinstance(fit, dict) or fit.get("enabled", True) is not False


def _skew_default(meta: Mapping[str, Any], tp: int) -> float:
    """The authors' alpha for buckets they have no row of; 0 where they state none."""
    fit = meta.get("skew_fit")
    ranks = fit.get("per_tp") if isinstance(fit, dict) else None
    entry = ranks.get(tp, ranks.get(str(tp))) if isinstance(ranks, dict) else None
    value = entry.get("alpha_default", 0.0) if isinstance(entry, dict) else 0.0
    return float(value) if isinstance(value, (int, float)) else 0.0


def _read_csv(path: Path, file: _File) -> Table:
    columns: dict[str, list[Any]] = {name: [] for name, _ in file.columns.values()}
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(stream)
            missing = [name for name in file.columns if name not in (reader.fieldnames or ())]
            if missing:
                raise InputError(
                    f"has no column {missing[0]}",
                    where=str(path),
                    remedy="its columns are " + ", ".join(file.columns),
                )
            for row in reader:
                if reader.line_num > _MAX_ROWS:
                    raise InputError(f"has more than {_MAX_ROWS:,} rows", where=str(path))
                _take(row, file, columns, f"{path}, row {reader.line_num}")
    except FileNotFoundError:
        raise InputError("no such file", where=str(path), remedy="give a whole profile") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
    if not next(iter(columns.values())):
        raise InputError("holds no row", where=str(path))
    return {name: _column(values) for name, values in columns.items()}


def _take(
    row: Mapping[str, str | None], file: _File, columns: dict[str, list[Any]], where: str
) -> None:
    for name, (column, convert) in file.columns.items():
        text = row[name]
        try:
            columns[column].append(convert(text or ""))
        except ValueError:
            raise InputError(
                f"{name} is {text!r}", where=where, remedy="give a number above 0"
            ) from None


def _column(values: list[Any]) -> Column:
    if isinstance(values[0], int):
        return np.array(values, dtype=np.int64)
    return np.array(values)
