"""A tiny imitation of the package's folder, with each of its traps."""

import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

GPU = "h100_sxm"


def rows(*tuples: tuple[Any, ...], columns: str, **same: Any) -> dict[str, list[Any]]:
    names = columns.split()
    found: dict[str, list[Any]] = {name: [] for name in [*names, *same]}
    for values in tuples:
        for name, value in [*zip(names, values, strict=True), *same.items()]:
            found[name].append(value)
    return found


GEMM = rows(
    ("bfloat16", "torch", 1, 1024, 1024, 0.010),
    ("bfloat16", "torch", 8, 1024, 1024, 0.012),
    ("bfloat16", "torch", 1, 8192, 8192, 0.001),  # 134 MB in 1 us: from the L2
    ("fp8_block", "DeepGemm", 1, 1024, 1024, 0.009),
    ("sq", "plugin", 1, 1024, 1024, 0.009),  # no table for smooth-quant
    columns="gemm_dtype kernel_source m n k latency",
)
_ATTENTION = "kernel_source head_dim window_size kv_cache_dtype batch_size isl step num_heads "
ATTENTION = _ATTENTION + "num_key_value_heads latency"
PREFILL = rows(
    ("fa3", 128, 0, "bfloat16", 1, 512, 0, 32, 8, 0.020),
    ("fa3", 128, 0, "bfloat16", 1, 512, 0, 32, 8, 0.022),  # twice: the median counts
    ("fa3", 128, 0, "bfloat16", 1, 1024, 0, 32, 8, 0.050),
    ("fa4", 128, 0, "bfloat16", 1, 1024, 0, 32, 4, 9.0),  # another kernel
    ("fa3", 128, 1024, "bfloat16", 1, 2048, 0, 32, 8, 0.060),
    columns=ATTENTION,
)
DECODE = rows(
    *(
        ("fa3", 128, 0, "bfloat16", 1, 1, length - 1, 32, 8, ms)
        for length, ms in ((128, 0.010), (256, 0.011), (512, 0.003), (1024, 0.012), (2048, 0.02))
    ),
    ("fa3", 128, 1024, "bfloat16", 1, 1, 127, 32, 8, 0.008),  # windowed: not kept
    columns=ATTENTION,
)
NCCL = rows(
    ("all_reduce", "half", 2, 1024, 0.006),
    ("all_reduce", "half", 2, 1048576, 0.020),
    ("alltoall", "half", 2, 1024, 0.007),
    ("all_reduce", "int8", 2, 1024, 0.005),
    columns="op_name nccl_dtype num_gpus message_size latency",
)


def custom(framework: str) -> dict[str, list[Any]]:
    return rows(
        ("vllm_graph", 2, 1024, 0.004),
        ("vllm_graph", 2, 2048, 0.005),
        ("vllm_eager", 2, 1024, 0.020),
        columns="backend num_gpus message_size latency",
        framework=framework,
    )


MOE = rows(
    (8, "balanced", 0.040),
    (8, "power_law_1.2", 0.050),
    (16, "power_law_1.2", 0.060),
    columns="num_tokens distribution latency",
    moe_dtype="bfloat16",
    hidden_size=2048,
    inter_size=768,
    topk=8,
    num_experts=128,
    moe_tp_size=2,
    moe_ep_size=4,
)
MLA = rows(
    (1, 127, 16, 0.010),
    columns="isl step num_heads latency",
    batch_size=4,
    kv_cache_dtype="bfloat16",
)

TABLES = {
    "gemm/vllm/0.14.0/gemm": GEMM,
    "gemm/vllm/0.24.0/gemm": {**GEMM, "latency": [2 * ms for ms in GEMM["latency"]]},
    "attention/vllm/0.24.0/context_attention": PREFILL,
    "attention/vllm/0.24.0/generation_attention": DECODE,
    "comm/nccl/2.29.2/nccl": NCCL,
    "comm/vllm/0.24.0/custom_allreduce": custom("vLLM"),
    "comm/vllm/0.14.0/custom_allreduce": custom("TRTLLM"),  # not vLLM's rows at all
    "moe/vllm/0.24.0/moe": MOE,
    "mla/sglang/0.5.14/generation_mla": MLA,
}


def folder(root: Path) -> Path:
    """Write the tables below `root`; return it."""
    for name, table in TABLES.items():
        path = root / "pkg/systems/data" / GPU / f"{name}_perf.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(table), path)
    return root


def wheel(root: Path) -> Path:
    """Write the same as a wheel."""
    source, target = folder(root / "unpacked"), root / "pkg-1.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for path in sorted(source.rglob("*.parquet")):
            archive.write(path, path.relative_to(source).as_posix())
    return target
