"""Every registered eviction order keeps the contract of `EvictionOrder`."""

import random

import pytest

from twin.paging.eviction import EVICTION


@pytest.mark.parametrize("name", sorted(EVICTION))
def test_starts_with_all_blocks_but_the_null_block_in_order(name: str) -> None:
    assert list(EVICTION[name](5)) == [1, 2, 3, 4]
    assert EVICTION[name](5).pop(3) == [1, 2, 3]


@pytest.mark.parametrize("name", sorted(EVICTION))
def test_each_block_is_in_it_once_or_not_at_all(name: str) -> None:
    order, chance = EVICTION[name](40), random.Random(7)
    out: set[int] = set()
    for _ in range(2000):
        inside = 39 - len(out)
        action = chance.randrange(3)
        if action == 0 and inside:
            taken = order.pop(chance.randint(1, inside))
            assert out.isdisjoint(taken)
            out.update(taken)
        elif action == 1 and inside:
            block = chance.choice(sorted(set(range(1, 40)) - out))
            order.remove(block)
            out.add(block)
        elif out:
            back = chance.sample(sorted(out), chance.randint(1, len(out)))
            cut = chance.randint(0, len(back))
            order.release(back[:cut], back[cut:])
            out.difference_update(back)
        listed = list(order)
        assert len(listed) == len(set(listed)) == 39 - len(out)
        assert out.isdisjoint(listed)
