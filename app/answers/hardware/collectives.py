"""Collectives of a setup's node by size and ranks, with the sizes that it uses."""

from dataclasses import dataclass

from app.answers.hardware.operations import MEASURED, named_ops
from app.answers.hardware.typical import typical_of
from app.answers.setup import Setup
from hwmodels.links import LINKS
from hwmodels.measured import MeasuredCostModel
from hwmodels.ops import Collective, CostModel, OpCost
from hwmodels.profile import HardwareProfile
from twin.engine.engines import base_cost_model
from twin.llm.pipeline_timer import StageLink
from twin.report.charts.chart import Chart
from twin.report.charts.collectives import LOOKS, Timed, collective_time
from twin.report.numbers import significant
from twin.scenario import Scenario
from twin.step import BatchShape
from twin.units import format_bytes, format_seconds

KINDS: dict[str, str] = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "all_to_all": "all-to-all",
    "send_recv": "send and receive",
}
"""Collectives that are priced, and how they are called."""

_LEAST, _MOST, _PER_OCTAVE = 10, 30, 4
"""Powers of two of the smallest and the largest buffer."""


@dataclass(frozen=True, slots=True)
class CollectivesAnswer:
    """Collectives of one kind.

    Attributes:
        chart: time over bytes.
        sentence: which of them the setup uses, and what they take.
        notes: what the lines rest on.
    """

    chart: Chart
    sentence: str
    notes: list[str]


def collectives_of(setup: Setup, kind: str, running: float | None) -> CollectivesAnswer:
    """Return the time of collectives of a kind on a setup's node.

    Args:
        setup: what is on screen.
        kind: of `KINDS`.
        running: the forecast's mean of running requests; None: not known.

    Raises:
        InputError: its parts do not go together.
    """
    scenario = setup.scenario()
    gpu, model = scenario.gpu, base_cost_model(scenario)
    ranks = [n for n in LOOKS if n <= gpu.node.num_gpus and (kind != "send_recv" or n == 2)]
    curve = [_timed(model, kind, size, n) for n in ranks for size in _sizes()]
    profile = model.profile if isinstance(model, MeasuredCostModel) else None
    used = _used(scenario, model, running)
    mine = [one for name, one in used if name == kind]
    chart = collective_time(KINDS[kind], gpu.title, curve, _measured(profile, kind, ranks), mine)
    return CollectivesAnswer(chart, _sentence(scenario, used), _notes(scenario, curve))


def _sizes() -> list[int]:
    steps = range(_LEAST * _PER_OCTAVE, _MOST * _PER_OCTAVE + 1)
    # The engine's own all-reduce takes whole 16 bytes alone.
    return [round(2 ** (step / _PER_OCTAVE) / 16) * 16 for step in steps]


def _timed(model: CostModel, kind: str, num_bytes: float, ranks: int, label: str = "") -> Timed:
    cost = model.cost(Collective(kind, num_bytes, ranks))
    return Timed(ranks, num_bytes, cost.seconds, cost.source.value, label)


def _measured(profile: HardwareProfile | None, kind: str, ranks: list[int]) -> list[Timed]:
    """Rows that stand behind the lines: the engine's all-reduce, else NCCL's."""
    if profile is None:
        return []
    name = "engine_all_reduce" if kind == "all_reduce" else f"nccl.{kind}"
    table = profile.tables.get(name)
    if table is None:
        return []
    columns = (table[column].tolist() for column in ("ranks", "bytes", "seconds"))
    return [
        Timed(count, size, seconds, "table")
        for count, size, seconds in zip(*columns, strict=True)
        if count in ranks and 2**_LEAST <= size <= 2**_MOST
    ]


def _used(scenario: Scenario, model: CostModel, running: float | None) -> list[tuple[str, Timed]]:
    """The collectives of the typical steps: (kind, one of them)."""
    typical = typical_of(scenario, running)
    found: dict[tuple[str, float], Timed] = {}
    for label, shape in (("decode", typical.decode), ("prefill", typical.prefill)):
        for op in [*_of_layers(scenario, shape), *_between_stages(scenario, model, shape)]:
            one = _timed(model, op.kind, op.num_bytes, op.ranks, label)
            found.setdefault((op.kind, op.num_bytes), one)
    return [(kind, one) for (kind, _), one in found.items()]


def _of_layers(scenario: Scenario, shape: BatchShape) -> list[Collective]:
    ops = [op for _, op in named_ops(scenario, shape)]
    return [op for op in ops if isinstance(op, Collective) and op.ranks > 1]


def _between_stages(scenario: Scenario, model: CostModel, shape: BatchShape) -> list[Collective]:
    """What a pipeline stage sends to the next one."""
    spec, asked = scenario.file.parallelism, list[Collective]()

    def cost(op: Collective) -> OpCost:
        asked.append(op)
        return model.cost(op)

    if spec.pp > 1:
        StageLink(scenario.arch, spec.tp, cost).transfer_s(shape.num_tokens)
    return asked


def _sentence(scenario: Scenario, used: list[tuple[str, Timed]]) -> str:
    spec = scenario.file.parallelism
    if not used:
        return "At tp 1 no step of this setup uses a collective: each GPU has the whole network."
    parts = [
        f"{KINDS[kind]} of {format_bytes(one.num_bytes)} in {one.label}: "
        f"{format_seconds(one.seconds)}"
        for kind, one in used
    ]
    where = f"tp {spec.tp}" + (f", pp {spec.pp}" if spec.pp > 1 else "")
    return f"Steps of this setup ({where}) wait for: {'; '.join(parts)}."


def _notes(scenario: Scenario, curve: list[Timed]) -> list[str]:
    gpu = scenario.gpu
    link = LINKS[gpu.node.link]
    raw, kept = significant(link.bytes_per_s / 1e9), significant(link.sustained_bytes_per_s / 1e9)
    notes = [
        f"Link: {link.name}, {raw} GB/s a direction by its datasheet, {kept} GB/s sustained "
        f"({link.sources['sustained_bytes_per_s']})."
    ]
    borrowed = sorted(
        {one.ranks for one in curve if one.source not in (*MEASURED, "physics")}
        - {one.ranks for one in curve if one.source in (*MEASURED, "physics")}
    )
    if borrowed:
        told = ", ".join(map(str, borrowed))
        notes.append(f"With {told} ranks: extrapolated from relatives or a prior, not measured.")
    return notes
