"""What vLLM's scheduler would hold after quiet calls equals what it holds after taking them."""

import random

from twin.request import Request, RequestState, SegmentContent
from twin.scheduling import VllmV1Scheduler
from twin.scheduling.limits import SchedulerLimits

SIZE = 4


def content(rng, prompt):
    """A few systems and questions, so that prompts and even answers of different requests meet."""
    first = rng.choice([3, 8, 13])
    return SegmentContent((first, 100 * first + rng.choice([1, 2])), (min(first, prompt), prompt))


def busy(rng):
    """Return a scheduler after some steps, and the prompts it was given."""
    ahead = rng.random() < 0.5
    limits = SchedulerLimits(
        max_num_seqs=6, max_num_batched_tokens=64, max_model_len=64, block_size=SIZE,
        num_gpu_blocks=rng.choice([24, 34, 60]), async_scheduling=ahead,
    )  # fmt: skip
    scheduler, flying, asked = VllmV1Scheduler(limits), [], []
    for number in range(rng.randrange(6, 40)):
        if rng.random() < 0.4:
            prompt = rng.randrange(1, 30)
            request = Request(
                len(asked),
                float(number),
                prompt,
                rng.randrange(2, 30),
                content=content(rng, prompt),
            )
            asked.append(request)
            scheduler.add(RequestState(request))
        if scheduler.has_requests():
            flying.append(scheduler.schedule())
        if len(flying) > ahead:
            scheduler.update(flying.pop(0))
    while not scheduler.quiet_calls() and scheduler.has_unfinished():
        flying.append(scheduler.schedule())
        if len(flying) > ahead:
            scheduler.update(flying.pop(0))
    return scheduler, asked


def test_a_peek_sees_what_the_calls_bring():
    told_apart = 0
    for seed in range(400):
        rng = random.Random(seed)
        scheduler, asked = busy(rng)
        calls = scheduler.quiet_calls()
        if not calls:
            continue
        calls = rng.randint(1, min(calls, 12))
        # Also what continues an answer that is being made.
        keys = [r.content.block_keys(SIZE, r.prompt_tokens + r.max_tokens) for r in asked]
        before = [scheduler.cached_prefix_keys(each) for each in keys]
        peeked = [scheduler.cached_prefix_keys(each, calls) for each in keys]
        taken = scheduler.blocks_taken(calls)
        assert sum(scheduler.skip_calls(calls)) == taken
        assert [scheduler.cached_prefix_keys(each) for each in keys] == peeked
        told_apart += peeked != before
        told_apart += any(new < old for new, old in zip(peeked, before, strict=True))
    assert told_apart > 60
