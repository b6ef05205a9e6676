"""The answer of `twin cache` in one sentence."""

from twin.caching.comparison import CacheComparison
from twin.caching.question import BELADY

_PLAIN = "lru"
_SHOWN = 5e-5
"""Smallest gain, a share of look-ups, that is not 0.00 points when it is shown."""


def summary_line(found: CacheComparison) -> str:
    """Return the most that any policy gains over LRU, at which size, and what the optimum has more.

    Without LRU among the policies: which lies nearest to the optimum. Without any: nothing.
    """
    policies = [policy for policy in found.replays if policy != BELADY]
    places = range(len(found.question.capacities_blocks))
    if not policies:
        return ""
    if _PLAIN not in policies:
        worst = {p: max(found.below_optimum(p, place) for place in places) for p in policies}
        nearest = min(policies, key=lambda policy: worst[policy])
        return (
            f"Nearest to Belady's optimum: {nearest}, at most {100 * worst[nearest]:.2f} points "
            "below it."
        )
    gain, place, policy = max(
        (_best_at(found, policies, place) for place in places), key=lambda each: each[0]
    )
    if gain < _SHOWN:
        place = max(places, key=lambda each: found.below_optimum(_PLAIN, each))
        return (
            f"No policy gains anything over {_PLAIN} at these sizes; Belady's optimum lies at most "
            f"{100 * found.below_optimum(_PLAIN, place):.2f} points above it "
            f"({_blocks(found, place)})."
        )
    rates = f"{100 * found.hit_rate(policy, place):.2f} against "
    rates += f"{100 * found.hit_rate(_PLAIN, place):.2f} %"
    return (
        f"Best: {policy}, {100 * gain:.2f} points of hit rate over {_PLAIN} at "
        f"{_blocks(found, place)} ({rates}); Belady's optimum lies "
        f"{100 * found.below_optimum(policy, place):.2f} points above that{_at_pool(found, place)}."
    )


def _best_at(found: CacheComparison, policies: list[str], place: int) -> tuple[float, int, str]:
    best = max(policies, key=lambda policy: found.hit_rate(policy, place))
    return found.hit_rate(best, place) - found.hit_rate(_PLAIN, place), place, best


def _at_pool(found: CacheComparison, told: int) -> str:
    """Return the same of the GPU's own pool, where it is compared and was not told."""
    sizes, blocks = found.question.capacities_blocks, found.pool_blocks
    if not blocks or blocks not in sizes or sizes.index(blocks) == told:
        return ""
    place = sizes.index(blocks)
    policies = [policy for policy in found.replays if policy != BELADY]
    gain, _, policy = _best_at(found, policies, place)
    best = f"{policy}, {100 * gain:.2f} over {_PLAIN}" if gain >= _SHOWN else f"none over {_PLAIN}"
    above = 100 * found.below_optimum(policy, place)
    return (
        f"; in the GPU's own pool ({_blocks(found, place)}): {best}, the optimum {above:.2f} more"
    )


def _blocks(found: CacheComparison, place: int) -> str:
    return f"{found.question.capacities_blocks[place]:,} blocks"
