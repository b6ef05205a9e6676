import json

import pytest

from app.answers.kinds import KINDS
from app.answers.memory.eviction import compared, eviction_from, shares_prefixes
from app.answers.setup import Setup
from tests.unit.caching.test_of_scenario import CONVERSATIONS, PREFIXED, scenario
from tests.unit.caching.traces import SESSIONS, written
from twin.caching.of_scenario import compare_own


@pytest.fixture
def trace(tmp_path):
    return {"kind": "trace", "path": written(tmp_path, SESSIONS)}


def _told(scenario):
    return compared(scenario, compare_own(scenario))


def test_where_there_is_room_eviction_is_not_what_limits():
    found = _told(scenario(PREFIXED))
    assert found.verdict.endswith("as many as any policy can: eviction is not what limits hits "
                                  "here.")  # fmt: skip
    assert found.rows[0]["Policy"] == "lru (in use)"
    assert {row["Below Belady (points)"] for row in found.rows} == {0.0}


def test_where_it_is_short_the_best_policy_is_named(tmp_path):
    # Round and round over one block more than there is room for: the worst that LRU can meet.
    rows = [(1000 * turn, 512, [turn % 5]) for turn in range(40)]
    trace = {"kind": "trace", "path": written(tmp_path, rows)}
    small = {"num_gpu_blocks": 129, "block_size": 16, "max_model_len": 2048}
    found = _told(scenario(trace, **small))
    by_policy = {row["Policy"]: row for row in found.rows}
    assert by_policy["lru (in use)"]["Hit rate (%)"] == 0
    best = max(found.rows[:-1], key=lambda row: row["Hit rate (%)"])
    assert by_policy["belady"]["Hit rate (%)"] > best["Hit rate (%)"] > 0
    assert found.verdict == (
        f"With this pool (4 blocks) lru hits 0 % of look-ups; {best['Policy']} hits "
        f"{best['Hit rate (%)']:.1f} points more, knowing the future would give "
        f"{by_policy['belady']['Hit rate (%)']:.1f} %."
    )
    other = _told(scenario(trace, **small, eviction="arc"))
    assert "arc (in use)" in {row["Policy"] for row in other.rows}
    assert [chart.name for chart in found.charts] == ["hit_rates", "below_belady"]
    assert found.options[:2] == ["--block-size", "512"]
    assert "4," in found.options[-1] or found.options[-1].endswith("4")


def test_the_command_has_the_kv_dtype_that_is_not_the_default(trace):
    found = _told(scenario(trace, kv_cache_dtype="fp8"))
    assert found.options[4:6] == ["--kv-cache-dtype", "fp8"]


def test_an_answer_survives_the_way_from_its_process():
    found = _told(scenario(CONVERSATIONS))
    assert eviction_from(json.loads(json.dumps(found.as_dict()))) == found


def test_which_setups_can_be_asked():
    assert shares_prefixes(Setup("chat-h100"))
    assert not shares_prefixes(Setup("closed-loop-h100"))


def test_it_is_a_question_for_a_process():
    heard = []
    setup = Setup("chat-h100", changes={"workload.num_requests": 10})
    answer = KINDS["cache"]({"setup": setup.as_dict()}, lambda *said: heard.append(said))
    assert eviction_from(json.loads(json.dumps(answer))).verdict
    assert heard[0][2] == "replays"
    assert heard[-1][0] < heard[-1][1]
