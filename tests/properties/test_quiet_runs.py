"""A scheduler that skips quiet calls is in every field the one that was called one by one."""

import copy
import dataclasses
import random
from collections import Counter, OrderedDict, deque

import pytest

from twin.engine.fast import only_decodes
from twin.paging.eviction import EVICTION
from twin.request import Request, RequestState, SegmentContent
from twin.scheduling.limits import SchedulerLimits
from twin.scheduling.sglang import SglangLimits, SglangScheduler
from twin.scheduling.trtllm import TrtllmLimits, TrtllmScheduler
from twin.scheduling.vllm_v1 import VllmV1Scheduler

IN_A_TEST = 6
IN_AN_AUDIT = 60
MAX_LEN = 160


def vllm(rng):
    size = rng.choice([1, 4, 16])
    limits = SchedulerLimits(
        max_num_seqs=rng.choice([3, 8, 32]),
        max_num_batched_tokens=rng.choice([32, 256]),
        max_model_len=MAX_LEN,
        block_size=size,
        num_gpu_blocks=2 + MAX_LEN * rng.choice([1, 3, 10]) // size,
        enable_prefix_caching=rng.random() < 0.6,
        scheduling_policy=rng.choice(["fcfs", "priority"]),
        async_scheduling=rng.random() < 0.6,
        eviction=rng.choice(["lru", *EVICTION]),
    )
    return VllmV1Scheduler(limits)


def sglang(rng):
    page = rng.choice([1, 1, 4, 16])
    limits = SglangLimits(
        max_total_num_tokens=MAX_LEN * rng.choice([2, 3, 10]) + page,
        context_length=MAX_LEN,
        max_running_requests=rng.choice([3, 8, 32]),
        page_size=page,
        chunked_prefill_size=rng.choice([-1, 32, 256]),
        schedule_policy=rng.choice(["fcfs", "lof", "lpm", "dfs-weight"]),
        schedule_conservativeness=rng.choice([0.2, 1.0]),
        disable_radix_cache=rng.random() < 0.3,
        enable_priority_scheduling=rng.random() < 0.3,
        radix_eviction_policy=rng.choice(["lru", "lfu", "slru", "priority", "tlru"]),
        tlru_threshold=50,
        tlru_next_prompt_estimate=20,
        overlap=rng.random() < 0.6,
        new_token_ratio_decay_steps=rng.choice([20, 600]),
    )
    return SglangScheduler(limits)


def trtllm(rng):
    size = rng.choice([1, 4, 16])
    limits = TrtllmLimits(
        max_batch_size=rng.choice([3, 8, 32]),
        max_num_tokens=rng.choice([MAX_LEN, 256]),
        max_seq_len=MAX_LEN,
        tokens_per_block=size,
        num_blocks=2 + MAX_LEN * rng.choice([1, 3, 10]) // size,
        capacity_scheduler_policy=rng.choice(
            ["GUARANTEED_NO_EVICT", "MAX_UTILIZATION", "STATIC_BATCH"]
        ),
        enable_chunked_prefill=rng.random() < 0.5,
        enable_block_reuse=rng.random() < 0.7,
        enable_partial_reuse=rng.random() < 0.5,
        overlap=rng.random() < 0.6,
        stratum=rng.choice(["main", "early"]),
    )
    return TrtllmScheduler(limits)


MAKE = {"vllm": vllm, "sglang": sglang, "trtllm": trtllm}


def requests(rng, count):
    """Some with content that others begin with, an answer that another prompt repeats included."""
    made = []
    for index in range(count):
        prompt, output = rng.randint(1, 90), rng.choice([1, 2, 30, 60])
        content = None
        if rng.random() < 0.5:
            content = SegmentContent((rng.randint(1, 3), 10 + index), (rng.choice([8, 40]), 60))
            if rng.random() < 0.5:
                content = SegmentContent((rng.randint(1, 3),), (MAX_LEN,))
        stop = rng.randint(1, output) if rng.random() < 0.5 else None
        made.append(
            Request(index, float(index), prompt, output, stop, content, rng.randint(0, 2) * 20)
        )
    return made


def picture(root):
    """Return all that can be reached from `root` as plain data; shared objects are numbered."""
    seen = {}

    def draw(thing):
        if thing is None or isinstance(thing, (int, float, str, range, random.Random)):
            return thing.getstate() if isinstance(thing, random.Random) else thing
        if id(thing) in seen:
            return ("see", seen[id(thing)])
        seen[id(thing)] = len(seen)
        kind = type(thing).__name__
        if isinstance(thing, (list, tuple, deque)):
            return (kind, [draw(each) for each in thing])
        if isinstance(thing, (set, frozenset)):
            return (kind, sorted(map(repr, thing)))
        if isinstance(thing, dict):  # by its order too
            return (kind, [(draw(key), draw(value)) for key, value in thing.items()])
        if callable(thing) and not hasattr(thing, "__slots__"):
            return kind
        names = [name for each in type(thing).__mro__ for name in getattr(each, "__slots__", ())]
        names += list(getattr(thing, "__dict__", ()))
        if dataclasses.is_dataclass(thing):
            names = [field.name for field in dataclasses.fields(thing)]
        return (kind, [(name, draw(getattr(thing, name))) for name in names])

    return draw(root)


def first_difference(ours, theirs, where=""):
    """Return (place, ours, theirs) where two pictures differ first, or None."""
    if type(ours) is not type(theirs) or not isinstance(ours, (list, tuple)):
        return None if ours == theirs else (where, ours, theirs)
    if len(ours) != len(theirs):
        return where, ours, theirs
    for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        named = isinstance(one, tuple) and one and isinstance(one[0], str)
        found = first_difference(one, other, f"{where}/{one[0] if named else index}")
        if found:
            return found
    return None


class Drive:
    """A scheduler in the loop of its engine: a call, then the oldest step in flight."""

    def __init__(self, scheduler):
        self.scheduler, self.in_flight = scheduler, deque()

    def step(self):
        """Return (plan, outcome or None)."""
        scheduler = self.scheduler
        plan = scheduler.schedule()
        if plan.total_tokens or scheduler.launches_empty:
            self.in_flight.append(plan)
            if len(self.in_flight) < scheduler.queue_depth:
                return plan, None
        if not self.in_flight:
            return plan, None
        return plan, scheduler.update(self.in_flight.popleft())


def skip(drive, calls):
    taken = drive.scheduler.skip_calls(calls)
    for plan in drive.in_flight:
        plan.index += calls
        # What it says of its launch is read then.
        plan.admitted, plan.finished_sent, plan.preempted = [], [], []
    return taken


def is_settled(drive):
    """What the engine looks at before it asks for quiet calls."""
    scheduler, flying = drive.scheduler, drive.in_flight
    if len(flying) != scheduler.queue_depth - 1:
        return False
    return all(only_decodes(plan) and plan.samples == scheduler.running for plan in flying)


def check_run(drive, calls):
    """Skip in a copy what this one does call by call; compare all there is after it."""
    skipped = copy.deepcopy(drive)
    taken = skip(skipped, calls)
    scheduler = drive.scheduler
    for call in range(calls):
        running, free = list(scheduler.running), scheduler.free_blocks
        plan, outcome = drive.step()
        assert plan.scheduled == [(state, 1) for state in running]
        assert plan.samples == running == outcome.delivered
        assert [*plan.admitted, *plan.preempted, *outcome.finished, *outcome.stale] == []
        assert free - scheduler.free_blocks == taken[call]
    ours, theirs = skipped.scheduler, scheduler
    assert (ours.num_running, ours.num_waiting) == (theirs.num_running, theirs.num_waiting)
    assert first_difference(picture(skipped), picture(drive)) is None


@pytest.mark.parametrize("name", sorted(MAKE))
@pytest.mark.parametrize("seed", range(IN_A_TEST))
def test_skipping_is_calling(name, seed):
    assert skip_at_random(name, seed)


@pytest.mark.audit
@pytest.mark.parametrize("name", sorted(MAKE))
@pytest.mark.parametrize("seed", range(IN_A_TEST, IN_AN_AUDIT))
def test_skipping_is_calling_many_times(name, seed):
    skip_at_random(name, seed)


def skip_at_random(name, seed):
    """Serve random requests, checking runs here and there; return how many were checked."""
    rng = random.Random(seed)
    drive = Drive(MAKE[name](rng))
    scheduler, runs = drive.scheduler, 0
    coming = [request for request in requests(rng, 16) if scheduler.fits(request)]
    for _ in range(4000):
        if coming and rng.random() < 0.1:
            scheduler.add(RequestState(coming.pop(0)))
        calls = scheduler.quiet_calls() if is_settled(drive) else 0
        if calls and rng.random() < 0.5:
            check_run(drive, min(calls, rng.randint(1, 70)))
            runs += 1
        elif scheduler.has_requests() or drive.in_flight:
            drive.step()
        elif not coming:
            break
    assert not coming
    assert not scheduler.has_unfinished()
    return runs


def test_pictures_see_a_difference():
    one = VllmV1Scheduler(SchedulerLimits(4, 64, 64, 16, 16))
    one.add(RequestState(Request(0, 0.0, 8, 8)))
    other = copy.deepcopy(one)
    assert picture(one) == picture(other)
    other.core.waiting.head().num_computed += 1
    where, *values = first_difference(picture(one), picture(other))
    assert where.endswith("num_computed/1")
    assert values == [0, 1]
    assert picture(Counter("ab")) != picture(OrderedDict(a=1, b=2))
