"""What a scheduler would hold after quiet calls is what it holds after them."""

import copy
import random

import pytest

from tests.properties.test_quiet_runs import MAKE, MAX_LEN, Drive, is_settled, requests
from twin.request import RequestState

IN_A_TEST = {"sglang": 30, "trtllm": 10, "vllm": 10}


def peeks(scheduler, asked, calls):
    """Return the blocks that so many calls take, and what of each prompt can be found then."""
    size = scheduler.prefix_key_tokens
    # Also what continues an answer that is being made.
    prompts = [r.content.block_keys(size, MAX_LEN) for r in asked if size and r.content]
    found = [scheduler.cached_prefix_keys(keys, calls) for keys in prompts]
    return scheduler.blocks_taken(calls), found


def check_peek(drive, asked, calls):
    """Return whether something could be found that could not before, or the other way round."""
    scheduler, free = drive.scheduler, drive.scheduler.free_blocks
    _, before = peeks(scheduler, asked, 0)
    taken, found = peeks(scheduler, asked, calls)
    later = copy.deepcopy(drive)
    for _ in range(calls - 1):
        later.step()
    later.scheduler.schedule()
    assert free - later.scheduler.free_blocks == taken
    assert peeks(later.scheduler, asked, 0) == (0, found)
    return before != found


@pytest.mark.parametrize("name", sorted(MAKE))
def test_a_peek_sees_what_the_calls_bring(name):
    assert sum(peek_at_random(name, seed) for seed in range(IN_A_TEST[name])) > 10


def peek_at_random(name, seed):
    rng = random.Random(seed)
    drive = Drive(MAKE[name](rng))
    scheduler, changes, asked = drive.scheduler, 0, []
    coming = [request for request in requests(rng, 16) if scheduler.fits(request)]
    while coming or scheduler.has_requests():
        if coming and rng.random() < 0.1:
            asked.append(coming.pop(0))
            scheduler.add(RequestState(asked[-1]))
        calls = scheduler.quiet_calls() if is_settled(drive) else 0
        if calls and rng.random() < 0.5:
            changes += check_peek(drive, asked, min(calls, rng.randint(1, 70)))
        if scheduler.has_requests():
            drive.step()
    return changes
