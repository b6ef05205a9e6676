"""The roofline of a setup's GPU, with its typical decode step and prefill chunk on it."""

from dataclasses import asdict, dataclass
from typing import Any

from app.answers.hardware.operations import Priced, priced_steps, shares_by_bound
from app.answers.hardware.typical import Typical, typical_of
from app.answers.setup import Setup
from hwmodels.dtypes import WEIGHT_BYTES
from hwmodels.spec import GpuSpec
from twin.engine.kv_layout import memory_fit_of
from twin.report.charts.chart import Chart
from twin.report.charts.roofline import Operation, Roofs, roofline
from twin.report.numbers import count, percent, significant
from twin.scenario import Scenario
from twin.units import format_seconds

BOUND_WORDS = {
    "compute": "tensor-core compute",
    "hbm": "HBM",
    "link": "links between GPUs",
    "launch": "kernel launches and start-up",
    "tlb": "address translation",
}
_SHORT = {"gate and up": "gate+up", "attention out": "out", "output head": "head"}


@dataclass(frozen=True, slots=True)
class RooflineAnswer:
    """What the roofline says.

    Attributes:
        chart: roofs and operations.
        sentence: what decode and prefill are bound by.
        basis: which steps these are.
        rows: the operations, as a table shows them.
        notes: what to keep in mind.
    """

    chart: Chart
    sentence: str
    basis: str
    rows: list[dict[str, Any]]
    notes: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def roofline_of(setup: Setup, running: float | None) -> RooflineAnswer:
    """Return the roofline of a setup.

    Args:
        setup: what is on screen.
        running: the forecast's mean of running requests; None: not known.

    Raises:
        InputError: its parts do not go together.
    """
    scenario = setup.scenario()
    typical = typical_of(scenario, running)
    decode, prefill = priced_steps(scenario, typical)
    steps = [
        (f"decode of {typical.decode_seqs:,}", decode),
        (f"prefill of {typical.chunk_tokens:,}", prefill),
    ]
    points = [_whole(name, ops) for name, ops in steps]
    points += [_point(op) for op in sorted(decode + prefill, key=lambda op: -op.seconds)]
    gpu = scenario.gpu
    chart = roofline(gpu.title, _roofs(scenario, gpu), points)
    return RooflineAnswer(
        chart=chart,
        sentence=_sentence(typical, decode, prefill),
        basis=_basis(scenario, typical, running),
        rows=[_row(op, ops) for _, ops in steps for op in ops],
        notes=_notes(scenario),
    )


def _roofs(scenario: Scenario, gpu: GpuSpec) -> Roofs:
    """Roofs of the dtypes that products can have; those of equal height are one."""
    by_rate: dict[float, list[str]] = {}
    for dtype, rate in gpu.flops_per_s.items():
        if dtype in WEIGHT_BYTES:
            by_rate.setdefault(rate, []).append(dtype)
    roofs = {", ".join(dtypes): rate for rate, dtypes in by_rate.items()}
    return Roofs(gpu.hbm_bytes_per_s, memory_fit_of(scenario).stream_bytes_per_s, roofs)


def _point(op: Priced) -> Operation:
    name = _SHORT.get(op.name, op.name)
    bound = BOUND_WORDS[op.bound]
    return Operation(name, op.phase, op.flops, op.num_bytes, op.seconds, bound, op.measured)


def _whole(name: str, ops: list[Priced]) -> Operation:
    """All of a step; measured if most of its time is."""
    seconds = sum(op.seconds for op in ops)
    measured = sum(op.seconds for op in ops if op.measured)
    return Operation(
        name,
        ops[0].phase,
        sum(op.flops for op in ops),
        sum(op.num_bytes for op in ops),
        seconds,
        BOUND_WORDS[shares_by_bound(ops)[0][0]],
        2 * measured >= seconds,
        whole=True,
    )


def _sentence(typical: Typical, decode: list[Priced], prefill: list[Priced]) -> str:
    first = f"Decode at batch {typical.decode_seqs:,} is bound by {_told(decode)}"
    return f"{first}. A prefill chunk of {count(typical.chunk_tokens)} tokens: {_told(prefill)}."


def _told(ops: list[Priced]) -> str:
    """`HBM: 81 % of its kernel time (most of it gate and up); …`."""
    bound, share = shares_by_bound(ops)[0]
    most = max((op for op in ops if op.bound == bound), key=lambda op: op.seconds)
    total = sum(op.seconds for op in ops)
    return (
        f"{BOUND_WORDS[bound]} ({percent(share)} of {format_seconds(total)} of kernel time, "
        f"{most.name} the largest part with {percent(most.seconds / total)})"
    )


def _basis(scenario: Scenario, typical: Typical, running: float | None) -> str:
    tp = scenario.file.parallelism.tp
    mean = "not known" if running is None else significant(running)
    return (
        f"Batch: the forecast's mean of running requests on a replica ({mean}); context: "
        f"{count(typical.context_tokens)} tokens, the mean over the requests' decode steps; "
        f"prefill: the median prompt or the step's token budget, without a cached prefix. "
        f"Work and time are of one GPU of {tp}."
    )


def _row(op: Priced, ops: list[Priced]) -> dict[str, Any]:
    total = sum(one.seconds for one in ops)
    return {
        "phase": op.phase,
        "operation": op.name,
        "tensor cores": op.path or "none",
        "GFLOP": op.flops / 1e9,
        "MB": op.num_bytes / 1e6,
        "FLOP/byte": op.flops / op.num_bytes if op.flops and op.num_bytes else None,
        "TFLOP/s": op.flops / op.seconds / 1e12 if op.seconds and op.flops else None,
        "time (us)": 1e6 * op.seconds,
        "share of step (%)": 100 * op.seconds / total,
        "bound by": BOUND_WORDS[op.bound],
        "price": op.source,
    }


def _notes(scenario: Scenario) -> list[str]:
    notes = []
    if scenario.layer_profile is not None:
        notes.append(
            f"Forecasts of this network take whole measured layers ({scenario.layer_profile.name}) "
            "and not the prices of single operations shown here."
        )
    if len(scenario.pools) > 1:
        notes.append(f"Of {len(scenario.pools)} kinds of replicas, the first.")
    if scenario.file.parallelism.pp > 1:
        notes.append("All layers are counted: pipeline stages share them out.")
    return notes
