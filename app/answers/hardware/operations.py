"""The operations of a step by name, with what they ask for and what they take."""

from dataclasses import dataclass
from itertools import groupby

from app.answers.hardware.typical import Typical
from hwmodels.ops import (
    Collective,
    CostModel,
    DecodeAttention,
    Elementwise,
    ExpertGemm,
    Gemm,
    Op,
    PrefillAttention,
    Sampling,
    Source,
)
from hwmodels.work import Work, compute_path, work_of
from twin.engine.engines import engine_costs
from twin.llm.arch import ModelArch
from twin.llm.fusions import norms_in_all_reduce
from twin.llm.lowering import attention_ops, body_ops, head_ops
from twin.scenario import Scenario
from twin.step import BatchShape

MEASURED = (Source.TABLE.value, Source.INTERPOLATED.value)
"""Sources of prices that measurements stand behind."""


@dataclass(frozen=True, slots=True)
class Priced:
    """One kind of operation in a step, over all layers of one GPU.

    Attributes:
        name: what it does in the network.
        phase: prefill or decode.
        path: dtype of the tensor cores; empty: it uses none.
        flops, num_bytes: what it asks for at least.
        seconds: what it takes.
        bound, source: what limits it most of that time, and how most of it was obtained.
    """

    name: str
    phase: str
    path: str
    flops: float
    num_bytes: float
    seconds: float
    bound: str
    source: str

    @property
    def measured(self) -> bool:
        """Whether measured tables price it."""
        return self.source in MEASURED


def priced_steps(scenario: Scenario, typical: Typical) -> tuple[list[Priced], list[Priced]]:
    """Return the operations of the typical decode step and of the typical prefill chunk."""
    model = engine_costs(scenario).cost_model
    return (
        _priced(scenario, model, typical.decode, "decode"),
        _priced(scenario, model, typical.prefill, "prefill"),
    )


def _priced(scenario: Scenario, model: CostModel, shape: BatchShape, phase: str) -> list[Priced]:
    named = named_ops(scenario, shape)
    found: dict[str, list[Op]] = {}
    for name, op in named:
        found.setdefault(name, []).append(op)
    return [_sum(name, phase, ops, scenario, model) for name, ops in found.items()]


def _sum(name: str, phase: str, ops: list[Op], scenario: Scenario, model: CostModel) -> Priced:
    work, seconds = Work(0.0, 0.0), 0.0
    bounds: dict[str, float] = {}
    sources: dict[str, float] = {}
    for op in ops:
        cost = model.cost(op)
        work += work_of(op, scenario.gpu)
        seconds += cost.seconds
        bounds[cost.bound.value] = bounds.get(cost.bound.value, 0.0) + cost.seconds
        sources[cost.source.value] = sources.get(cost.source.value, 0.0) + cost.seconds
    path = compute_path(ops[0], scenario.gpu) if work.flops else ""
    return Priced(
        name, phase, path, work.flops, work.num_bytes, seconds,
        max(bounds, key=lambda key: bounds[key]), max(sources, key=lambda key: sources[key]),
    )  # fmt: skip


def named_ops(scenario: Scenario, shape: BatchShape) -> list[tuple[str, Op]]:
    """Return the operations of one forward pass on one rank, each with its name."""
    arch, precision, spec = scenario.arch, scenario.precision, scenario.file.parallelism
    fused = norms_in_all_reduce(scenario.file.engine.name, arch.name, spec.tp)
    body = body_ops(arch, precision, spec.tp, shape.num_tokens, spec.ep, fused)
    gemms = iter(_gemm_names(arch))
    named = [(next(gemms) if isinstance(op, Gemm) else _name(op), op) for op in body]
    named += [("attention", op) for op in attention_ops(arch, precision, spec.tp, shape)]
    head = head_ops(arch, spec.tp, shape.sampled_seqs)
    return named + [("output head" if isinstance(op, Gemm) else _name(op), op) for op in head]


def _gemm_names(arch: ModelArch) -> list[str]:
    """Name the products of a layer in the order in which a pass is lowered."""
    if arch.mla is None:
        names = ["QKV", "attention out"]
    elif arch.mla.q_lora_rank:
        names = ["query and KV down", "query up", "KV up", "attention out"]
    else:
        names = ["query", "KV down", "KV up", "attention out"]
    mlp = ["gate and up" if arch.gated_mlp else "up", "down"]
    sparse = arch.moe.num_moe_layers if arch.moe else 0
    if arch.num_layers > sparse:
        names += mlp
    if arch.moe and sparse:
        names.append("router")
        if arch.moe.shared_intermediate:
            names += [f"shared expert {name}" for name in mlp]
    return names


_NAMES: dict[type[Op], str] = {
    ExpertGemm: "experts",
    Elementwise: "small kernels",
    Sampling: "sampling",
    PrefillAttention: "attention",
    DecodeAttention: "attention",
}


def _name(op: Op) -> str:
    if isinstance(op, Collective):
        return op.kind.replace("_", "-")
    return _NAMES[type(op)]


def shares_by_bound(ops: list[Priced]) -> list[tuple[str, float]]:
    """Return the shares of a step's kernel time by what limits it, the largest first."""
    total = sum(op.seconds for op in ops)
    ordered = sorted(ops, key=lambda op: op.bound)
    found = [
        (bound, sum(op.seconds for op in group) / total)
        for bound, group in groupby(ordered, key=lambda op: op.bound)
    ]
    return sorted(found, key=lambda pair: -pair[1])
