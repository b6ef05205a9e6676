"""The answer of `twin memory`: a scenario's KV layout, by block size and dtype."""

from dataclasses import asdict, dataclass
from typing import Any

from hwmodels.memory.constants import MemoryFit
from hwmodels.memory.layout import KvLayout
from hwmodels.provenance import decode_kv_dtypes
from twin.engine.engines import engine_costs
from twin.engine.kv_layout import layout_of, memory_fit_of
from twin.errors import InputError
from twin.llm.kv_layout import KvPool, kv_layout
from twin.memory.batch import DecodeBatch, fullest_batch
from twin.memory.rows import BYTE_KINDS, MemoryRow, Pricing, bytes_by_kind, memory_row
from twin.scenario import Scenario

BLOCK_SIZES = (8, 16, 32, 64, 128, 256)
KV_DTYPES = ("bf16", "fp8", "int8", "int4")

_TOLD = (
    "tlb_l1_entries", "tlb_l2_reach_bytes", "tlb_l3_reach_bytes", "tlb_l1_miss_cycles",
    "tlb_l2_miss_cycles", "walk_cycles", "walkers", "l2_near_cycles", "l2_far_cycles",
    "dram_cycles", "l2_bytes_per_s", "stream_bytes_per_s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MemoryExplanation:
    """What a scenario's memory looks like.

    Attributes:
        name, llm, gpu, tp, kv_dtype: of the scenario.
        layout: of its own pool.
        batch: the decode step that rows are about.
        fit: constants of the GPU.
        rows: by block size, then dtype.
        shares: where bytes go, in the order of `rows`: share by kind.
        pretended: durations and what is told of the GPU come from a dry run's profile.
        notes: what was left out.
    """

    name: str
    llm: str
    gpu: str
    tp: int
    kv_dtype: str
    layout: KvLayout
    batch: DecodeBatch
    fit: MemoryFit
    rows: tuple[MemoryRow, ...]
    shares: tuple[dict[str, float], ...]
    pretended: bool
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        layout = self.layout
        facts = {
            name: getattr(layout, name)
            for name in (
                "pool_bytes", "slab_bytes", "token_bytes", "block_bytes", "fragment_bytes",
                "bytes_per_page_visit",
            )
        }  # fmt: skip
        fit = self.fit
        return {
            "name": self.name,
            "llm": self.llm,
            "gpu": self.gpu,
            "tp": self.tp,
            "kv_dtype": self.kv_dtype,
            "pretended": self.pretended,
            "layout": {**asdict(layout), **facts},
            "batch": {"seqs": self.batch.seqs, "kv_tokens": self.batch.tokens},
            "constants": {
                name: {
                    "value": getattr(fit, name),
                    "interval": fit.interval_of(name),
                    "source": fit.source_of(name),
                    "measured": name in fit.measured,
                }
                for name in _TOLD
            },
            "rows": [asdict(row) for row in self.rows],
            "shares": [
                {"block_tokens": row.block_tokens, "kv_dtype": row.kv_dtype, **share}
                for row, share in zip(self.rows, self.shares, strict=True)
            ],
            "notes": list(self.notes),
        }


def explain(scenario: Scenario) -> MemoryExplanation:
    """Return what a scenario's KV layout means, beside other block sizes and dtypes.

    Every row has the same bytes of pool, and the same batch: the first requests of the workload
    that decode together in all of them.

    Raises:
        InputError: the workload knows no request that fits.
    """
    own = layout_of(scenario)
    layouts, notes = _layouts(scenario, own.pool_bytes)
    batch = fullest_batch(
        scenario, [(layout.block_tokens, layout.num_blocks) for _, layout in layouts]
    )
    gpu, fit = scenario.gpu, memory_fit_of(scenario)
    tp = scenario.file.parallelism.tp
    # Kernels over KV that lies well: what the layout costs is told beside them.
    plain = engine_costs(scenario, charge_layout=False).cost_model
    by = Pricing(plain, fit, gpu.boost_hz, scenario.arch, tp)
    return MemoryExplanation(
        name=scenario.file.name,
        llm=scenario.arch.name,
        gpu=gpu.name,
        tp=tp,
        kv_dtype=scenario.precision.kv_dtype,
        layout=own,
        batch=batch,
        fit=fit,
        rows=tuple(memory_row(layout, dtype, batch, by) for dtype, layout in layouts),
        shares=tuple(_shares(layout, batch) for _, layout in layouts),
        pretended=scenario.profile is not None and scenario.profile.pretended,
        notes=notes,
    )


def _layouts(
    scenario: Scenario, pool_bytes: int
) -> tuple[list[tuple[str, KvLayout]], tuple[str, ...]]:
    """Return (dtype, layout) by block size and dtype, and what cannot be."""
    spread = scenario.file.parallelism
    found: list[tuple[str, KvLayout]] = []
    notes: dict[str, None] = {}
    for size in BLOCK_SIZES:
        for dtype in KV_DTYPES:
            try:
                one = _layout(scenario, KvPool(dtype, size, 1, spread.tp, spread.pp))
            except InputError as error:
                notes[f"{dtype}: {error.problem}"] = None
                continue
            if pool_bytes < one.block_bytes:
                notes[f"{dtype}, {size} tokens: no block fits the pool"] = None
                continue
            pool = KvPool(dtype, size, pool_bytes // one.block_bytes, spread.tp, spread.pp)
            found.append((dtype, _layout(scenario, pool)))
    if scenario.arch.sliding_window is not None and scenario.arch.num_sliding_layers:
        notes["rows are of a full-attention layer; sliding-window layers read less"] = None
    notes |= dict.fromkeys(_kernel_notes(scenario))
    if len(scenario.pools) > 1:
        notes[f"of {len(scenario.pools)} kinds of replicas, the first"] = None
    return found, tuple(notes)


def _kernel_notes(scenario: Scenario) -> list[str]:
    """Say of which KV dtypes no table holds the kernel's time, and where it comes from then."""
    engine, own = scenario.file.engine, scenario.profile
    held = decode_kv_dtypes(
        scenario.gpu.name, engine.name, engine.version, own.profile if own else None
    )
    if not held:
        return ["kernel us: by the physics form, no table of this GPU holds decode attention"]
    lacking = ", ".join(dtype for dtype in KV_DTYPES if dtype not in held)
    if not lacking:
        return []
    return [
        f"kernel us of {lacking}: no table of this GPU holds it; the physics form for its bytes, "
        "corrected as bf16's table is, without what unpacking takes"
    ]


def _layout(scenario: Scenario, pool: KvPool) -> KvLayout:
    spec = scenario.file.kv_layout
    return kv_layout(scenario.arch, pool, pools=spec.pools, order=spec.order)


def _shares(layout: KvLayout, batch: DecodeBatch) -> dict[str, float]:
    found = bytes_by_kind(layout, batch)
    total = sum(found.values())
    return {kind: found[kind] / total for kind in BYTE_KINDS}
