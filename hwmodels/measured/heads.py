"""Which measured head counts stand for a head count that nobody measured."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

Pair = tuple[int, int]
"""(query heads, KV heads) of one rank."""

# Ratio of head counts up to which the nearest pair of as many KV heads is taken.
_CLOSE_GROUP = math.log(1.5)


@dataclass(frozen=True, slots=True)
class HeadShare:
    """A measured pair, its weight, and by how much its batch must be larger to do equal work."""

    pair: Pair
    batch_factor: float
    weight: float


def stand_ins(pair: Pair, measured: Collection[Pair]) -> tuple[list[HeadShare], bool]:
    """Return measured pairs for `pair`, weights summing to 1, and whether they stand on both sides.

    In this order: the pair itself; pairs of as many KV heads with fewer and more heads (28/4 lies
    between 24/4 and 32/4); pairs of equal group with fewer and more KV heads; the nearest pair of
    as many KV heads if its group is close; a pair of equal group on a larger batch. The last holds
    because a kernel sees sequences times KV heads, each with heads / kv_heads queries: 32/32 heads
    are 8/8 heads on four times the batch.
    """
    if pair in measured:
        return [HeadShare(pair, 1.0, 1.0)], True
    heads, kv_heads = pair
    same_kv = sorted(h for h, kv in measured if kv == kv_heads)
    shares = _between(heads, same_kv)
    if shares:
        return [HeadShare((h, kv_heads), 1.0, weight) for h, weight in shares], True
    group = heads / kv_heads
    same_group = {kv: h for h, kv in measured if h / kv == group}
    shares = _between(kv_heads, sorted(same_group))
    if shares:
        return [HeadShare((same_group[kv], kv), 1.0, weight) for kv, weight in shares], True
    close = [h for h in same_kv if abs(math.log(h / heads)) <= _CLOSE_GROUP]
    if close:
        nearest = min(close, key=lambda h: abs(math.log(h / heads)))
        return [HeadShare((nearest, kv_heads), 1.0, 1.0)], False
    if same_group:
        kv = min(
            sorted(same_group, reverse=True), key=lambda k: (kv_heads % k != 0, abs(kv_heads - k))
        )
        return [HeadShare((same_group[kv], kv), kv_heads / kv, 1.0)], True
    return _other_kv(pair, measured)


def _other_kv(pair: Pair, measured: Collection[Pair]) -> tuple[list[HeadShare], bool]:
    """The group between two measured groups of another number of KV heads, else the nearest."""
    heads, kv_heads = pair
    by_kv: dict[int, list[int]] = {}
    for measured_heads, kv in sorted(measured):
        by_kv.setdefault(kv, []).append(measured_heads)
    for kv in sorted(by_kv, key=lambda k: (kv_heads % k != 0, abs(math.log(kv_heads / k)))):
        factor = kv_heads / kv
        shares = _between(heads / factor, by_kv[kv])
        if shares:
            return [HeadShare((h, kv), factor, weight) for h, weight in shares], True
    nearest = min(
        sorted(measured),
        key=lambda m: (
            abs(math.log(heads * m[1] / kv_heads / m[0])),
            abs(math.log(kv_heads / m[1])),
        ),
    )
    return [HeadShare(nearest, kv_heads / nearest[1], 1.0)], False


def _between(wanted: float, known: Sequence[int]) -> list[tuple[int, float]]:
    if wanted in known:
        return [(int(wanted), 1.0)]
    below = [h for h in known if h < wanted]
    above = [h for h in known if h > wanted]
    if not below or not above:
        return []
    low, high = below[-1], above[0]
    share = math.log(wanted / low) / math.log(high / low)
    return [(low, 1 - share), (high, share)]
