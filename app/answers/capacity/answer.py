"""Whether a setup fits, at which TP, and how many requests at which context."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.answers.capacity.command import capacity_command
from app.answers.capacity.deployment import Deployment, deployments
from app.answers.capacity.lengths import Lengths, lengths_of
from app.answers.setup import Setup
from twin.errors import InputError
from twin.llm.capacity import KvCapacity
from twin.load.inputs import Inputs
from twin.report.budget import MemoryBudget, budget_of
from twin.report.charts.budget import memory_budget
from twin.report.charts.chart import Chart
from twin.report.charts.concurrency import ContextMark, KvPool, concurrency
from twin.report.numbers import count, significant
from twin.units import GIB

REFERENCE_TOKENS = 8192
"""The context that the verdict speaks of, if the engine takes one so long."""


@dataclass(frozen=True, slots=True)
class CapacityAnswer:
    """What the page says.

    Attributes:
        fits: one longest request fits.
        verdict: one sentence.
        detail: what it means for the scenario's own requests, sentences.
        kv_gib, weights_gib: of one GPU.
        kv_tokens: that requests of one engine can hold.
        at_p99: requests at once at the scenario's P99 context; None: its lengths are not known.
        budget, requests: the charts.
        notes: caveats, a sentence each.
        command: what gives the same in a terminal; empty: nothing does, as `notes` say.
        pools: names, where there are several kinds of engine.
    """

    fits: bool
    verdict: str
    detail: tuple[str, ...]
    kv_gib: float
    weights_gib: float
    kv_tokens: int
    at_p99: int | None
    budget: Chart
    requests: Chart
    notes: tuple[str, ...]
    command: str
    pools: tuple[str, ...] = ()


def capacity_answer(setup: Setup, pool: str = "") -> CapacityAnswer:
    """Return whether a setup fits and what its KV cache holds.

    Args:
        setup: what is asked; it need not fit.
        pool: of several kinds of engine, the one that is meant; unknown: the first.

    Raises:
        InputError: its parts do not go together.
    """
    found, inputs = deployments(setup)
    one = found.get(pool) or next(iter(found.values()))
    by_tp = one.by_tp()
    own = by_tp[one.tp]
    budgets = [budget_of(one.file.engine.name, tp, each) for tp, each in by_tp.items()]
    mine = next(budget for budget in budgets if budget.tp == one.tp)
    lengths, problem = _lengths(one, inputs)
    pools = kv_pools(one)
    marks = _marks(lengths)
    seqs = one.policy().max_num_seqs
    command, missing = capacity_command(one)
    at_p99 = None if lengths is None else _pool(one, own).requests(lengths.percentile(99))
    return CapacityAnswer(
        fits=own.fits,
        verdict=_verdict(one, own, mine, budgets),
        detail=tuple(_detail(one, own, marks, problem)),
        kv_gib=own.kv_bytes / GIB,
        weights_gib=own.weights_bytes / GIB,
        kv_tokens=one.held(own) * own.block_size,
        at_p99=at_p99,
        budget=memory_budget(budgets, one.gpu_name, one.tp),
        requests=concurrency(pools, own.max_model_len, marks, seqs),
        notes=(*own.notes, *_notes(one, own), *missing, *_cut(lengths)),
        command=command,
        pools=tuple(found) if len(found) > 1 else (),
    )


def kv_pools(one: Deployment) -> list[KvPool]:
    """Return the KV blocks by dtype, those of equal bytes as one, the scenario's own one first."""
    names: dict[tuple[int, int], list[str]] = {}
    for dtype in one.kv_dtypes():
        found = one.capacity(kv_cache_dtype=dtype)
        names.setdefault((one.held(found), found.block_size), []).append(dtype)
    return [KvPool(", ".join(name), *size) for size, name in names.items()]


def _pool(one: Deployment, own: KvCapacity) -> KvPool:
    return KvPool(one.file.policy.kv_cache_dtype, one.held(own), own.block_size)


def _lengths(one: Deployment, inputs: Inputs) -> tuple[Lengths | None, str]:
    try:
        longest = one.policy().max_model_len
        return lengths_of(inputs.workload, one.file.seed, longest), ""
    except InputError as error:
        return None, f"The scenario's own lengths are not known: {error}."


def _marks(lengths: Lengths | None) -> list[ContextMark]:
    if lengths is None:
        return []
    return [
        ContextMark("mean context", lengths.mean),
        ContextMark("P99 context", lengths.percentile(99)),
    ]


def _verdict(
    one: Deployment, own: KvCapacity, mine: MemoryBudget, budgets: Sequence[MemoryBudget]
) -> str:
    place = f"{one.gpus}×{one.gpu_name}"
    if own.fits:
        context = min(REFERENCE_TOKENS, own.max_model_len)
        requests = count(_pool(one, own).requests(context))
        each = " a GPU" if one.gpus > 1 else ""
        spec, cluster = one.file.parallelism, one.file.cluster
        of = " a replica" if (cluster.replicas or 0) > 1 else ""
        of = " a data-parallel rank" if spec.dp > 1 else of
        return (
            f"Fits on {place} with {significant(own.kv_bytes / GIB)} GiB{each} for KV: "
            f"{requests} requests{of} at {short(context)} tokens."
        )
    least = next((budget.tp for budget in budgets if budget.fits), None)
    remedy = (
        f"the smallest TP that fits is {least}" if least else f"no TP up to {budgets[-1].tp} fits"
    )
    much = significant(mine.too_much_bytes / GIB)
    return (
        f"Does not fit on {place}: {much} GiB too much for one request of "
        f"{count(own.max_model_len)} tokens; {remedy}."
    )


def _detail(
    one: Deployment, own: KvCapacity, marks: Sequence[ContextMark], problem: str
) -> list[str]:
    pool, seqs = _pool(one, own), one.policy().max_num_seqs
    told = []
    if marks and pool.blocks:
        here = " and ".join(
            f"{count(pool.requests(mark.tokens))} at its {mark.name} ({count(mark.tokens)} tokens)"
            for mark in marks
        )
        told.append(
            f"Of requests like this scenario's fit at once: {here}; the engine runs at most "
            f"{count(seqs)}."
        )
    if not own.fits and pool.blocks:
        told.append(
            f"The weights fit: with max_model_len up to {count(pool.blocks * pool.block_tokens)} "
            "it would start."
        )
    return [*told, *filter(None, (problem,))]


def short(tokens: int) -> str:
    """Return `8k` of 8192, other contexts with thousands separators."""
    return f"{tokens // 1024}k" if tokens % 1024 == 0 else count(tokens)


def _notes(one: Deployment, own: KvCapacity) -> list[str]:
    given = one.file.policy.num_gpu_blocks
    if given is None:
        return []
    return [
        f"The scenario sets num_gpu_blocks to {count(given)}: requests are counted with that, "
        f"the bars show the {count(own.kv_blocks)} that fit."
    ]


def _cut(lengths: Lengths | None) -> list[str]:
    if lengths is None or not lengths.cut:
        return []
    return [f"Lengths are those of the first {count(lengths.prompt.size)} requests."]
