"""Sources against a server that answers in random order after random times."""

import heapq
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from twin.request import Request, SegmentContent
from twin.workload.build import load_traces
from twin.workload.source import RequestSource
from twin.workload.spec import WorkloadSpec

ADAPTER: TypeAdapter[WorkloadSpec] = TypeAdapter(WorkloadSpec)
SEEDS = st.integers(0, 2**32)
QUICK = settings(max_examples=40, deadline=None)


@dataclass
class Run:
    """What a server saw: requests by index, when each ended, and who was rejected."""

    requests: list[Request] = field(default_factory=list)
    end_s: dict[int, float] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)
    caused_by: dict[int, int] = field(default_factory=dict)
    outstanding: list[int] = field(default_factory=list)  # sent and not ended, after each end
    peak_in_flight: int = 0


def source_of(spec: dict[str, Any], seed: int, max_model_len: int) -> RequestSource:
    workload = load_traces(ADAPTER.validate_python(spec), ".")
    return workload.source(np.random.SeedSequence(seed), max_model_len)


def serve(source: RequestSource, service_seed: int, max_model_len: int) -> Run:
    """Answer everything; a prompt and answer that do not fit are rejected on arrival."""
    rng, run = np.random.default_rng(service_seed), Run()
    events: list[tuple[float, int, int]] = []  # (time, 0 end | 1 arrival, index)
    in_flight = 0

    def take(requests: Any, now_s: float, cause: int | None) -> None:
        for request in requests:
            assert request.index == len(run.requests), "indices are dense, in order of creation"
            assert request.arrival_s >= now_s
            run.requests.append(request)
            if cause is not None:
                run.caused_by[request.index] = cause
            heapq.heappush(events, (request.arrival_s, 1, request.index))

    started = source.start()
    assert [r.arrival_s for r in started] == sorted(r.arrival_s for r in started)
    take(started, 0.0, None)
    while events:
        now_s, is_arrival, index = heapq.heappop(events)
        request = run.requests[index]
        if is_arrival:
            in_flight += 1
            run.peak_in_flight = max(run.peak_in_flight, in_flight)
            if request.prompt_tokens + request.max_tokens > max_model_len:
                run.rejected.add(index)
                heapq.heappush(events, (now_s, 0, index))
            else:
                heapq.heappush(events, (now_s + rng.exponential(), 0, index))
        else:
            in_flight -= 1
            run.end_s[index] = now_s
            take(source.on_end(request, now_s, rejected=index in run.rejected), now_s, index)
            run.outstanding.append(len(run.requests) - len(run.end_s))
    assert source.expected_requests == len(run.requests) == len(run.end_s)
    return run


def cached_blocks(first: Request, then: Request, size: int) -> int:
    """Return the blocks `then` finds once `first` is answered: it computed P + O - 1 tokens."""
    assert first.content is not None
    assert then.content is not None
    computed = first.prompt_tokens + first.output_tokens - 1
    have = set(first.content.block_keys(size, computed))
    count = 0
    for key in then.content.block_keys(size, then.prompt_tokens):
        if key not in have:
            break
        count += 1
    return count


# --- closed loop


@QUICK
@given(
    concurrency=st.integers(1, 12),
    num_requests=st.integers(1, 60),
    warmup=st.integers(0, 10),
    think_time_s=st.sampled_from([0.0, 0.5]),
    think=st.sampled_from(["fixed", "exponential"]),
    seed=SEEDS,
    service_seed=SEEDS,
)
def test_closed_loop(
    concurrency: int,
    num_requests: int,
    warmup: int,
    think_time_s: float,
    think: str,
    seed: int,
    service_seed: int,
) -> None:
    spec = {
        "kind": "closed_loop",
        "concurrency": concurrency,
        "num_requests": num_requests,
        "warmup_requests": warmup,
        "think_time_s": think_time_s,
        "think": think,
        "prompt_tokens": {"kind": "uniform", "low": 1, "high": 120},
        "output_tokens": 8,
    }
    run = serve(source_of(spec, seed, 100), service_seed, 100)
    total = num_requests + warmup
    assert len(run.requests) == total
    assert run.peak_in_flight <= concurrency
    assert run.outstanding == [min(concurrency, total - ended) for ended in range(1, total + 1)]
    assert sum(request.arrival_s == 0 for request in run.requests) >= min(concurrency, total)
    for index, cause in run.caused_by.items():
        pause_s = run.requests[index].arrival_s - run.end_s[cause]
        assert pause_s >= 0
        if think == "fixed":
            assert pause_s == pytest.approx(think_time_s)
    other = serve(source_of(spec, seed, 100), service_seed + 1, 100)
    lengths = [request.prompt_tokens for request in run.requests]
    assert lengths == [request.prompt_tokens for request in other.requests]


# --- sessions


@st.composite
def session_specs(draw: st.DrawFn) -> dict[str, Any]:
    after = {"kind": "after_answer", "think_time_s": draw(st.sampled_from([0.0, 2.0]))}
    by_clock = {"kind": "open_loop", "interval_s": draw(st.sampled_from([0.0, 0.5, 5.0]))}
    return {
        "kind": "sessions",
        "arrivals": {"kind": "poisson", "rate": 2},
        "num_sessions": draw(st.integers(1, 8)),
        "turns": {"kind": "uniform", "low": 1, "high": draw(st.integers(1, 9))},
        "num_groups": draw(st.integers(1, 3)),
        "system_prompt_tokens": draw(st.sampled_from([0, 1, 50])),
        "message_tokens": {"kind": "uniform", "low": 1, "high": 60},
        "answer_tokens": {"kind": "uniform", "low": 1, "high": 60},
        "next_turn": draw(st.sampled_from([after, by_clock])),
        "finish": draw(st.sampled_from(["stop", "length"])),
    }


@QUICK
@given(spec=session_specs(), seed=SEEDS, service_seed=SEEDS, size=st.sampled_from([1, 4, 16]))
def test_sessions(spec: dict[str, Any], seed: int, service_seed: int, size: int) -> None:
    longest = 240  # so short that many sessions start anew, and a fresh prompt stands out
    run = serve(source_of(spec, seed, longest), service_seed, longest)
    assert not run.rejected, "system prompt, message and answer always fit here"
    by_session: dict[int, list[Request]] = {}
    for request in run.requests:
        by_session.setdefault(request.session, []).append(request)
    assert len(by_session) == spec["num_sessions"]
    system = spec["system_prompt_tokens"]
    for turns in by_session.values():
        assert [turn.turn for turn in turns] == list(range(len(turns)))
        for before, after in pairwise(turns):
            assert after.arrival_s >= run.end_s[before.index], "one in flight a session"
            whole = before.prompt_tokens + before.output_tokens
            if after.prompt_tokens > whole:
                assert cached_blocks(before, after, size) == (whole - 1) // size
            else:
                assert system < after.prompt_tokens <= system + 60, "starts anew"
                assert whole + 60 + 60 > longest, "only when it had to"
                assert cached_blocks(before, after, size) == system // size
    # The dice fall beforehand: who ends first changes no length and no identity.
    other = serve(source_of(spec, seed, longest), service_seed + 1, longest)
    assert {(r.session, r.turn, r.prompt_tokens, r.content) for r in run.requests} == {
        (r.session, r.turn, r.prompt_tokens, r.content) for r in other.requests
    }


def test_sessions_share_their_groups_system_prompt_only() -> None:
    spec = {
        "kind": "sessions",
        "arrivals": {"kind": "constant", "rate": 1},
        "num_sessions": 60,
        "turns": 1,
        "num_groups": 3,
        "system_prompt_tokens": 64,
        "message_tokens": 64,
        "answer_tokens": 5,
        "next_turn": {"kind": "after_answer", "think_time_s": 1},
    }
    keys = [
        request.content.block_keys(16, 128)
        for request in source_of(spec, 0, 1000).start()
        if request.content is not None
    ]
    assert len({tuple(key[:4]) for key in keys}) == 3
    assert len({key[4] for key in keys}) == 60


def test_a_message_that_never_fits_is_rejected_and_the_session_goes_on() -> None:
    spec = {
        "kind": "sessions",
        "arrivals": {"kind": "constant", "rate": 1},
        "num_sessions": 2,
        "turns": 4,
        "message_tokens": 200,
        "answer_tokens": 5,
        "next_turn": {"kind": "after_answer", "think_time_s": 1},
    }
    run = serve(source_of(spec, 0, 100), 0, 100)
    assert len(run.requests) == len(run.rejected) == 8
    assert {request.prompt_tokens for request in run.requests} == {200}


def test_open_loop_turns_keep_their_clock() -> None:
    spec = {
        "kind": "sessions",
        "arrivals": {"kind": "constant", "rate": 1},
        "num_sessions": 1,
        "turns": 50,
        "message_tokens": 1,
        "answer_tokens": 1,
        "next_turn": {"kind": "open_loop", "interval_s": 20},
    }
    run = serve(source_of(spec, 0, 1000), 0, 1000)
    assert [request.arrival_s for request in run.requests] == [1 + 20 * i for i in range(50)]


# --- shared prefixes


@st.composite
def shared_prefix_specs(draw: st.DrawFn, behaviour: str) -> dict[str, Any]:
    stage = st.fixed_dictionaries(
        {"rate": st.sampled_from([0.5, 1.0, 7.3]), "duration_s": st.sampled_from([2, 10.5])}
    )
    return {
        "kind": "shared_prefix",
        "behaviour": behaviour,
        "num_groups": draw(st.integers(1, 3)),
        "prompts_per_group": draw(st.integers(1, 4)),
        "system_prompt_tokens": draw(st.sampled_from([0, 40])),
        "question_tokens": {"kind": "uniform", "low": 1, "high": 30},
        "output_tokens": {"kind": "uniform", "low": 1, "high": 30},
        "stages": draw(st.lists(stage, min_size=1, max_size=3)),
        "arrivals": draw(st.sampled_from(["exponential", "poisson_seconds", "constant"])),
        "stage_gap_s": draw(st.sampled_from([0.0, 1.0])),
    }


def split_stages(spec: dict[str, Any], run: Run) -> list[list[Request]]:
    """Return each stage's requests in order of creation; check counts and drains."""
    stages, taken, start_s = [], 0, 0.0
    for stage in spec["stages"]:
        count = int(stage["rate"] * stage["duration_s"])
        requests = run.requests[taken : taken + count]
        assert len(requests) == count
        assert all(request.arrival_s >= start_s for request in requests)
        start_s = max(run.end_s[request.index] for request in requests) + spec["stage_gap_s"]
        taken += count
        stages.append(requests)
    assert taken == len(run.requests)
    return stages


@QUICK
@given(spec=shared_prefix_specs("cycle"), seed=SEEDS, service_seed=SEEDS)
def test_cycle(spec: dict[str, Any], seed: int, service_seed: int) -> None:
    run = serve(source_of(spec, seed, 1000), service_seed, 1000)
    size = spec["num_groups"] * spec["prompts_per_group"]
    prompts: dict[int, list[int]] = {}
    for requests in split_stages(spec, run):
        times_s = [request.arrival_s for request in requests]
        assert times_s == sorted(times_s)
        for i, request in enumerate(requests):
            assert request.content is not None
            keys = request.content.block_keys(1, request.prompt_tokens)
            assert prompts.setdefault(i % size, keys) == keys, "the same walk in every stage"
    system = spec["system_prompt_tokens"]
    questions = {keys[system] for keys in prompts.values()}
    assert len(questions) == len(prompts)
    if system and len(prompts) == size:
        groups = [keys[system - 1] for keys in prompts.values()]
        assert sorted(groups.count(group) for group in set(groups)) == (
            [spec["prompts_per_group"]] * spec["num_groups"]
        )
    answers = [r.content.ids[-1] for r in run.requests if isinstance(r.content, SegmentContent)]
    assert len(set(answers)) == len(answers)


@QUICK
@given(
    spec=shared_prefix_specs("grow"),
    seed=SEEDS,
    service_seed=SEEDS,
    longest=st.sampled_from([150, 10_000]),
)
def test_grow(spec: dict[str, Any], seed: int, service_seed: int, longest: int) -> None:
    run = serve(source_of(spec, seed, longest), service_seed, longest)
    split_stages(spec, run)
    size = spec["num_groups"] * spec["prompts_per_group"]
    users: dict[int, list[Request]] = {}
    for request in run.requests:
        users.setdefault(request.session, []).append(request)
    sent = [int(stage["rate"] * stage["duration_s"]) for stage in spec["stages"]]
    for user in range(size):
        due = sum(len(range(user, count, size)) for count in sent)
        turns = users.get(user, [])
        assert len(turns) == due, "request i of a stage goes to user i mod population"
        question = turns[0].prompt_tokens - spec["system_prompt_tokens"] if turns else 0
        dead = False
        for before, after in pairwise(turns):
            assert after.arrival_s >= run.end_s[before.index], "one in flight a user"
            whole = before.prompt_tokens + before.output_tokens
            if before.index in run.rejected:
                dead = True
                assert after.prompt_tokens == before.prompt_tokens
            else:
                assert after.prompt_tokens == whole + question
                assert cached_blocks(before, after, 8) == (whole - 1) // 8
            assert not dead or after.index in run.rejected, "a session that outgrew is dead"
    if longest == 10_000:
        assert not run.rejected


@pytest.mark.parametrize(
    ("arrivals", "last_s"), [("exponential", 20.0), ("constant", 20.0), ("poisson_seconds", None)]
)
def test_stage_arrivals(arrivals: str, last_s: float | None) -> None:
    spec = {
        "kind": "shared_prefix",
        "behaviour": "cycle",
        "num_groups": 1,
        "prompts_per_group": 1,
        "system_prompt_tokens": 1,
        "question_tokens": 1,
        "output_tokens": 1,
        "stages": [{"rate": 50, "duration_s": 20}],
        "arrivals": arrivals,
    }
    times_s = np.array([request.arrival_s for request in source_of(spec, 4, 100).start()])
    assert times_s.size == 1000
    gaps_s = np.diff(times_s)
    variation = gaps_s.std() / gaps_s.mean()
    if last_s is not None:
        assert times_s[-1] == pytest.approx(last_s)
    if arrivals == "constant":
        assert variation == pytest.approx(0, abs=1e-9)
        return
    assert variation == pytest.approx(1, abs=0.12)
    counts = np.histogram(times_s, bins=np.arange(0, int(times_s[-1]) + 1))[0]
    assert counts.mean() == pytest.approx(50, rel=0.1)
    assert counts.std() > 2, "seconds differ, as Poisson counts do"


# --- determinism


@QUICK
@given(
    spec=st.one_of(session_specs(), shared_prefix_specs("cycle"), shared_prefix_specs("grow")),
    seed=SEEDS,
)
def test_equal_seeds_give_equal_runs(spec: dict[str, Any], seed: int) -> None:
    first, again = (serve(source_of(spec, seed, 300), 1, 300).requests for _ in range(2))
    assert first == again
