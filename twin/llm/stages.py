"""Pipeline stages: which layers of a network each group of GPUs holds."""

from dataclasses import dataclass, replace

from twin.llm.arch import ModelArch, MoeArch


@dataclass(frozen=True, slots=True)
class Ends:
    """Which ends of the network a stage holds.

    Attributes:
        first: it looks the tokens up in the embedding.
        last: it has the final norm and the output head, and samples.
    """

    first: bool = True
    last: bool = True


WHOLE = Ends()
"""Without a pipeline the one stage is both ends."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: its layers as a network of their own, and which ends it holds."""

    arch: ModelArch
    ends: Ends


def stage_layers(num_layers: int, pp: int) -> tuple[int, ...]:
    """Return how many layers each of `pp` stages holds.

    Layers that do not divide go one each to the stages before the last, backwards: the last has
    the output head, the first the embedding. Source: vLLM 0.33.0, `get_pp_indices`.
    """
    counts = [num_layers // pp] * pp
    for place in range(2, num_layers % pp + 2):
        counts[-place] += 1
    return tuple(counts)


def pipeline_stages(arch: ModelArch, pp: int) -> tuple[Stage, ...]:
    """Return the `pp` stages of a network, first to last.

    Layers of a kind are not told apart by their place, so: dense layers of a network with experts
    come first (DeepSeek, GLM, Kimi), unless they are half of all or more, then every other;
    windowed and KV-keeping layers are spread evenly, as networks that mix kinds alternate them.
    """
    found: list[Stage] = []
    start = 0
    for place, count in enumerate(stage_layers(arch.num_layers, pp)):
        ends = Ends(first=place == 0, last=place == pp - 1)
        found.append(Stage(_layers(arch, start, start + count), ends))
        start += count
    return tuple(found)


def _layers(arch: ModelArch, start: int, end: int) -> ModelArch:
    """Return the network of the layers from `start` up to `end`."""
    share = _Evenly(arch.num_layers, start, end)
    kept = arch.num_kv_layers
    return replace(
        arch,
        num_layers=end - start,
        num_sliding_layers=share.of(arch.num_sliding_layers),
        num_kv_layers=None if kept is None else share.of(kept),
        moe=None if arch.moe is None else _experts(arch, arch.moe, start, end),
    )


def _experts(arch: ModelArch, moe: MoeArch, start: int, end: int) -> MoeArch | None:
    dense = arch.num_layers - moe.num_moe_layers
    if 2 * dense >= arch.num_layers:
        layers = _Evenly(arch.num_layers, start, end).of(moe.num_moe_layers)
    else:
        layers = end - max(start, min(end, dense))
    return replace(moe, num_moe_layers=layers) if layers else None


@dataclass(frozen=True, slots=True)
class _Evenly:
    """The stretch [start, end) of `total` layers."""

    total: int
    start: int
    end: int

    def of(self, count: int) -> int:
        """Return how many of `count` evenly spread layers lie in it; stretches add up."""
        return count * self.end // self.total - count * self.start // self.total
