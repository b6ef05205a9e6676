"""The eviction comparison on a scenario's own requests."""

import numpy as np
import pytest

from tests.unit.caching.traces import SESSIONS, written
from twin.caching.accesses import accesses_of
from twin.caching.of_scenario import (
    accesses_of_requests,
    compare_own,
    requests_of,
    tells_prefixes,
)
from twin.caching.question import BELADY
from twin.engine.run import simulate
from twin.errors import InputError
from twin.load.scenario_file import scenario_from
from twin.paging.eviction import EVICTION
from twin.workload.readers import read_trace

FIXED = {"kind": "fixed", "value": 64}
POISSON = {"kind": "poisson", "rate": 20}
SYNTHETIC = {"kind": "synthetic", "arrivals": POISSON, "num_requests": 20,
             "prompt_tokens": FIXED, "output_tokens": FIXED}  # fmt: skip
PREFIXED = {**SYNTHETIC, "prefixes": {"num_prefixes": 2, "prefix_tokens": 64}}
CONVERSATIONS = {
    "kind": "sessions", "arrivals": POISSON, "num_sessions": 6,
    "turns": {"kind": "fixed", "value": 3}, "system_prompt_tokens": 64, "message_tokens": FIXED,
    "answer_tokens": FIXED, "next_turn": {"kind": "after_answer", "think_time_s": 0.1},
}  # fmt: skip
CLOSED = {"kind": "closed_loop", "concurrency": 2, "num_requests": 4, "prompt_tokens": FIXED,
          "output_tokens": FIXED}  # fmt: skip


def scenario(workload, **policy):
    return scenario_from(
        {
            "schema_version": 1,
            "llm": "llama-3.1-8b",
            "gpu": "h100_sxm",
            "policy": policy,
            "workload": workload,
        }
    )


@pytest.fixture
def trace(tmp_path):
    return {"kind": "trace", "path": written(tmp_path, SESSIONS)}


def test_which_workloads_say_what_prompts_share(trace, tmp_path):
    azure = tmp_path / "azure.csv"
    azure.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,374,44\n")
    for workload, tells in (
        (trace, True),
        (PREFIXED, True),
        (CONVERSATIONS, True),
        (SYNTHETIC, False),
        (CLOSED, False),
        ({"kind": "trace", "path": str(azure)}, False),
    ):
        assert tells_prefixes(scenario(workload)) is tells
    with pytest.raises(InputError, match="bring a trace with block identities"):
        compare_own(scenario(SYNTHETIC))


def test_a_traces_requests_look_up_what_the_trace_does(trace):
    requests = requests_of(scenario(trace))
    ours, theirs = accesses_of_requests(requests, 512), accesses_of(read_trace(trace["path"]), 512)
    assert ours.num_distinct == theirs.num_distinct
    assert ours.offsets.tolist() == theirs.offsets.tolist()
    # Keys may be numbered otherwise, but equal ones stand in equal places.
    pairs = set(zip(ours.keys.tolist(), theirs.keys.tolist(), strict=True))
    assert len(pairs) == ours.num_distinct
    assert np.allclose(ours.arrival_s, theirs.arrival_s)


def test_the_workloads_own_changes_count(trace):
    assert len(requests_of(scenario({**trace, "max_requests": 2}))) == 2


def test_requests_that_follow_upon_others_come_by_simulation():
    whole = scenario(CONVERSATIONS)
    requests, result = requests_of(whole), simulate(whole)
    assert len(requests) == len(result.requests) == 18
    assert [r.arrival_s for r in requests] == sorted(result.requests.arrival_s.tolist())
    accesses = accesses_of_requests(requests, 16)
    assert accesses.reuse > 0.4  # each turn repeats what was said before


def test_own_requests_without_content_share_nothing():
    requests = requests_of(scenario(SYNTHETIC))
    accesses = accesses_of_requests(requests, 16)
    assert (accesses.num_lookups, accesses.num_distinct) == (80, 80)
    with pytest.raises(InputError, match="no prompt fills a block of 128 tokens"):
        accesses_of_requests(requests, 128)


def test_the_replicas_own_pool_is_among_the_sizes(trace):
    heard = []
    found = compare_own(
        scenario(trace, num_gpu_blocks=129, block_size=16, max_model_len=2048),
        lambda done, total: heard.append((done, total)),
    )
    assert found.accesses.block_tokens == 512
    assert found.pool_blocks == 4  # 128 blocks of 16 tokens
    assert found.pool_blocks in found.question.capacities_blocks
    assert list(found.replays) == [*EVICTION, BELADY]
    total = len(EVICTION) + 1
    total *= len(found.question.capacities_blocks)
    assert heard == [(done, total) for done in range(total)]


def test_blocks_are_the_engines_where_the_trace_has_none():
    found = compare_own(scenario(PREFIXED, block_size=32))
    assert found.accesses.block_tokens == 32
    last = len(found.question.capacities_blocks) - 1
    assert found.hit_rate("lru", last) == pytest.approx((20 - 2) * 2 / (20 * 4))
    assert found.question.token_bytes == 131072


def test_nothing_grows_old_where_all_come_at_once(tmp_path):
    rows = [(0, tokens, ids) for _, tokens, ids in SESSIONS]
    found = compare_own(scenario({"kind": "trace", "path": written(tmp_path, rows)}))
    assert "ttl" not in found.replays
    assert "lru" in found.replays
