"""Fits the overhead parameters of `twin/llm/overhead.py` to measured KV-cache sizes.

Rows of one engine version share one set. The best measured version (vLLM 0.15.1) fixes three
terms by least squares; of the others, which have one or two rows each, only the term that
dominates there is free and the rest is borrowed.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from calibrate.capacity.rows import CapacityRow
from twin.llm.capacity import CapacityQuery, per_gpu_weights, step_shape
from twin.llm.engine_version import Version, default_gpu_memory_utilization, parse_version
from twin.llm.kv_cache import block_bytes
from twin.llm.overhead_model import OverheadParameters, forward_bytes_per_token

TERMS = (
    "non_torch_bytes",
    "tp_bytes",
    "sampler_bytes_per_logit",
    "cuda_graph_bytes",
    "forward_scale",
)
_MAX_ITERATIONS = 20


@dataclass(frozen=True, slots=True)
class FitPlan:
    """Which terms of a version are free, and how its runs were set where a table is silent.

    `num_seqs` and `num_batched_tokens` are the engine's defaults of that version on the GPUs that
    were measured; for 0.15.1 they are the settings its runs state.
    """

    engine: str
    version: str
    fitted: tuple[str, ...]
    num_seqs: int = 256
    num_batched_tokens: int = 2048

    def covers(self, row: CapacityRow) -> bool:
        """Whether a row ran this version."""
        return row.engine == self.engine and row.version_key == _key(self.engine, self.version)


# vLLM V1's defaults (`get_batch_defaults`): 1024 sequences and 8192 tokens on GPUs of 70 GiB and
# more except A100, else 256 and 2048.
REFERENCE = FitPlan(
    "vllm", "0.15.1", ("non_torch_bytes", "tp_bytes", "sampler_bytes_per_logit"), 128, 2048
)
PLANS = (
    FitPlan("vllm", "0.2.4", ("non_torch_bytes", "tp_bytes")),
    FitPlan("vllm", "0.5.3", ("forward_scale",)),
    FitPlan("vllm", "0.7.0", ("sampler_bytes_per_logit",)),
    FitPlan("vllm", "0.9.0", ("sampler_bytes_per_logit",), 1024, 8192),
    REFERENCE,
    FitPlan("vllm", "0.19.0", ("sampler_bytes_per_logit",)),
    FitPlan("vllm", "0.26.0", ("cuda_graph_bytes",)),
    FitPlan("sglang", "any", ("non_torch_bytes",), 256, 8192),
    FitPlan("trtllm", "1.0", ("non_torch_bytes",), 256, 8192),
)


def fit_all(rows: Sequence[CapacityRow]) -> list[OverheadParameters]:
    """Return one set for every plan that has rows, in the order of `PLANS`."""
    reference = fit(REFERENCE, rows, None)
    fitted = []
    borrowed = reference
    for plan in PLANS:
        if plan is REFERENCE:
            if reference is not None:
                fitted.append(reference)
            continue
        base = borrowed if plan.engine == "vllm" else None
        own = fit(plan, rows, base)
        if own is None:
            continue
        fitted.append(own)
        if plan.engine == "vllm" and _key("vllm", plan.version) > _key("vllm", REFERENCE.version):
            borrowed = own  # later builds stem from the newest one measured before them
    return fitted


def fit(
    plan: FitPlan, rows: Sequence[CapacityRow], base: OverheadParameters | None
) -> OverheadParameters | None:
    """Return the least-squares set of one version, each row weighted by its KV memory.

    Args:
        plan: the version and its free terms.
        rows: any measured rows; those of other versions are left out.
        base: where terms that are not free come from; None: 0.
    """
    usable = eligible(plan, rows)
    if not usable:
        return None
    start = OverheadParameters(
        engine=plan.engine,
        version=plan.version,
        non_torch_bytes=base.non_torch_bytes if base else 0.0,
        tp_bytes=base.tp_bytes if base else 0.0,
        sampler_bytes_per_logit=base.sampler_bytes_per_logit if base else 0.0,
        num_seqs=plan.num_seqs,
        num_batched_tokens=plan.num_batched_tokens,
        rows=len(usable),
        fitted=plan.fitted,
    )
    # Begin where the sampler is the peak of every row, then follow which of the two peaks is.
    current = (
        replace(start, sampler_bytes_per_logit=1e3)
        if "sampler_bytes_per_logit" in plan.fitted
        else start
    )
    for _ in range(_MAX_ITERATIONS):
        solved = _solve(plan, usable, start, current)
        if solved == current:
            break
        current = solved
    return current


def eligible(plan: FitPlan, rows: Sequence[CapacityRow]) -> list[CapacityRow]:
    """Return the rows a version is fitted on.

    Networks with windowed layers and rows that state the free memory stay out; rows with a
    quantised KV cache and with experts too, unless a version has nothing else.
    """
    own = [
        row
        for row in rows
        if plan.covers(row)
        and row.query is not None
        and not row.query.arch.num_sliding_layers
        and row.query.free_after_load_bytes is None
    ]
    plain = [row for row in own if row.query is not None and row.query.kv_cache_dtype == "auto"]
    own = plain or own
    dense = [row for row in own if row.query is not None and row.query.arch.moe is None]
    return dense or own


def literal(fitted: Sequence[OverheadParameters]) -> str:
    """Return the Python source of `twin/llm/overhead.py`."""
    lines = [
        '"""Memory overhead of engine versions, fitted to measured KV-cache sizes.',
        "",
        "Written by `twin-calibrate capacity CSV --fit`; do not edit by hand. What the terms mean",
        "stands in `overhead_model.py`.",
        '"""',
        "",
        "from typing import Any",
        "",
        "OVERHEADS: tuple[dict[str, Any], ...] = (",
    ]
    for parameters in fitted:
        lines.append("    {")
        for name, value in asdict(parameters).items():
            if value not in (0.0, ()):
                # Whole bytes suffice, and thousandths of a byte a logit.
                whole = name.endswith("_bytes")
                shown = round(value, 0 if whole else 4) if name in TERMS else value
                lines.append(f"        {_quoted(name)}: {_quoted(shown)},")
        lines.append("    },")
    return "\n".join([*lines, ")", ""])


def _solve(
    plan: FitPlan,
    rows: Sequence[CapacityRow],
    start: OverheadParameters,
    current: OverheadParameters,
) -> OverheadParameters:
    """One linear solution with each row's peak branch held as `current` has it."""
    design, target = [], []
    for row, query in _asked(rows):
        row_design = _row_factors(query, start, current)
        kv = _measured_kv_bytes(row, query)
        wanted = _implied_overhead(query, kv) - sum(
            row_design[name] * getattr(start, name) for name in TERMS if name not in plan.fitted
        )
        design.append([row_design[name] / kv for name in plan.fitted])
        target.append(wanted / kv)
    values = np.linalg.lstsq(np.array(design), np.array(target), rcond=None)[0]
    solved: dict[str, Any] = dict(zip(plan.fitted, map(float, values), strict=True))
    return replace(start, **solved)


def _row_factors(
    query: CapacityQuery, start: OverheadParameters, current: OverheadParameters
) -> dict[str, float]:
    """Return what each term is multiplied by in a row: the overhead is their sum."""
    shape = step_shape(query)
    logits = float(query.arch.vocab_size * (shape.max_num_seqs or start.num_seqs))
    tokens = shape.max_num_batched_tokens or start.num_batched_tokens
    forward = tokens * forward_bytes_per_token(query.arch, query.tp, query.ep)
    sampler_leads = current.sampler_bytes_per_logit * logits >= current.forward_scale * forward
    steps = 0.0 if query.engine == "sglang" else 1.0  # its pool is set before any step runs
    return {
        "non_torch_bytes": 1.0,
        "tp_bytes": float(query.tp > 1),
        "sampler_bytes_per_logit": steps * logits * sampler_leads,
        "cuda_graph_bytes": 1.0,
        "forward_scale": steps * forward * (not sampler_leads),
    }


def _implied_overhead(query: CapacityQuery, kv_bytes: float) -> float:
    """Return what must have been kept back for an engine to print this many KV bytes."""
    share = query.gpu_memory_utilization
    if share is None:
        share = default_gpu_memory_utilization(
            query.engine, query.engine_version, query.total_memory_bytes, query.tp * query.pp
        )
    weights = per_gpu_weights(query)
    if query.engine == "sglang":
        return query.total_memory_bytes - (kv_bytes + weights) / share
    if query.engine == "trtllm":
        return query.total_memory_bytes - weights - kv_bytes / share
    return share * query.total_memory_bytes - weights - kv_bytes


def _asked(rows: Sequence[CapacityRow]) -> list[tuple[CapacityRow, CapacityQuery]]:
    return [(row, row.query) for row in rows if row.query is not None]


def _measured_kv_bytes(row: CapacityRow, query: CapacityQuery) -> float:
    """KV bytes behind a block count; the engine rounded down, so half a block is added."""
    per_block = block_bytes(query.arch, query.block_size, query.kv_cache_dtype, query.tp, query.pp)
    return (row.blocks + 0.5) * per_block


def _key(engine: str, version: str) -> tuple[str, Version]:
    return engine, parse_version(version) or (0, 0, 0)


def _quoted(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        inner = ", ".join(_quoted(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)
