"""Which steps of a simulation are tried: some of every kind of batch that takes GPU time."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twin.engine.result import SimulationResult
from twin.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PREFILL, MIXED = "prefill only", "prefill and decode"
RARE = "decode, rare shapes"
"""Decode-only steps of strata whose time isn't worth a step of their own."""


@dataclass(frozen=True, slots=True)
class SampledStep:
    """A step to be tried.

    Attributes:
        core, number: which engine core's, and the how-manieth of it.
        stratum: the kind of its batch.
        weight: what it counts; all weights add up to 1.
        simulated_s: what it took in the simulation.
    """

    core: int
    number: int
    stratum: str
    weight: float
    simulated_s: float


@dataclass(frozen=True, slots=True)
class Sample:
    """Steps that stand for a simulation.

    Attributes:
        shares: of the simulated GPU time, by stratum, of those that steps were drawn from.
        covered_share: these shares' sum.
    """

    steps: tuple[SampledStep, ...]
    shares: Mapping[str, float]
    covered_share: float


def sample_steps(result: SimulationResult, count: int, seed: int) -> Sample:
    """Draw steps of a result, stratified by the shape of their batches.

    Decode-only steps are told apart by octaves of their sequences, and of the KV tokens that a
    running request holds on average, as `decode 4-7 x 512-1023`; those of little time stand
    together. Each stratum gets steps by its share of GPU time, and one at least, the largest
    first; a step counts by its own time within its stratum's share.

    Raises:
        InputError: the simulation took no step.
    """
    steps = result.steps
    if not len(steps):
        raise InputError("no step was simulated", remedy="give the scenario requests")
    busy_s, numbers = steps.busy_s, _numbers(steps.replica)
    names = _without_rare(_strata(result), busy_s, count)
    rows = {name: np.flatnonzero(names == name) for name in np.unique(names).tolist()}
    total_s = float(busy_s.sum())
    seconds = {name: float(busy_s[mine].sum()) for name, mine in rows.items()}
    chosen = sorted(seconds, key=lambda name: -seconds[name])[:count]
    counts = _allocated({name: (seconds[name], rows[name].size) for name in chosen}, count)
    random = np.random.default_rng(np.random.SeedSequence([seed, 5]))
    covered_s = sum(seconds[name] for name in chosen)
    found: list[SampledStep] = []
    for name in sorted(chosen):
        drawn = np.sort(random.choice(rows[name], counts[name], replace=False))
        own_s = float(busy_s[drawn].sum())
        found += [
            SampledStep(
                int(steps.replica[row]), int(numbers[row]), name,
                seconds[name] / covered_s * float(busy_s[row]) / own_s, float(busy_s[row]),
            )
            for row in drawn
        ]  # fmt: skip
    shares = {name: seconds[name] / total_s for name in chosen}
    return Sample(tuple(found), shares, covered_s / total_s)


def in_turn(sample: Sample) -> list[SampledStep]:
    """Return the steps so that each stratum has its first before any has its second."""
    order: list[tuple[int, float, SampledStep]] = []
    seen: dict[str, int] = {}
    for step in sample.steps:
        place = seen.get(step.stratum, 0)
        seen[step.stratum] = place + 1
        order.append((place, -sample.shares[step.stratum], step))
    return [step for *_, step in sorted(order, key=lambda one: one[:2])]


def _strata(result: SimulationResult) -> NDArray[np.str_]:
    steps = result.steps
    names = np.full(len(steps), MIXED, dtype=object)
    names[steps.decode_tokens == 0] = PREFILL
    decode_only = np.flatnonzero(steps.prefill_tokens == 0)
    held = steps.used_blocks * result.block_size / np.maximum(steps.running, 1)
    for row in decode_only.tolist():
        seqs = _octave(float(steps.decode_tokens[row]))
        names[row] = f"decode {seqs} x {_octave(float(held[row]))}"
    return names.astype(str)


def _without_rare(names: NDArray[np.str_], busy_s: Floats, count: int) -> NDArray[np.str_]:
    """Gather the decode strata that have less than half a step's share of all time."""
    least_s = 0.5 / count * float(busy_s.sum())
    merged = names.astype(object)
    for name in np.unique(names).tolist():
        if name not in (PREFILL, MIXED) and float(busy_s[names == name].sum()) < least_s:
            merged[names == name] = RARE
    return merged.astype(str)


def _octave(value: float) -> str:
    """A power of two and the number before the next: `8-15`."""
    low = 2 ** int(np.log2(max(value, 1.0)))
    return f"{low}-{2 * low - 1}" if low > 1 else "1"


def _numbers(cores: Ints) -> Ints:
    """The how-manieth of its core each row is; rows stand in order of time."""
    numbers = np.empty(cores.size, dtype=np.int64)
    for core in np.unique(cores):
        mine = np.flatnonzero(cores == core)
        numbers[mine] = np.arange(mine.size)
    return numbers


def _allocated(strata: Mapping[str, tuple[float, int]], count: int) -> dict[str, int]:
    """Steps of each stratum of (seconds, steps it has): one each, then to who lacks most."""
    found = dict.fromkeys(strata, 1)
    total_s = sum(seconds for seconds, _ in strata.values())
    for _ in range(count - len(found)):
        lacking = {
            name: count * seconds / total_s - found[name]
            for name, (seconds, has) in strata.items()
            if found[name] < has
        }
        if not lacking:
            break
        found[max(lacking, key=lambda name: lacking[name])] += 1
    return found
