"""What replicas say of their load is what they hold, on every engine and at every instant."""

import random

import pytest

from tests.properties.random_scenarios import random_scenario
from twin.engine import routers, simulate
from twin.engine.result import UNFINISHED
from twin.load import scenario_from

SEEDS = 25


class Probe:
    """A router that asks everybody about everything before it takes replicas in turn."""

    looks = True

    def __init__(self, counted):
        self.asked, self._turn, self._counted = [], routers.RoundRobin(), counted

    def choose(self, request, replicas):
        self.asked.append([self._loads(replica, request) for replica in replicas])
        if self._counted:
            for replica in replicas:
                self._count(replica)
        return self._turn.choose(request, replicas)

    def _loads(self, member, request):
        instance = member.instance
        if instance is not None:
            # SGLang and TensorRT-LLM keep who is given up until its next result.
            assert member.load_requests <= instance.load_requests
        loads = member.load_requests, member.load_tokens, member.waiting_requests, member.kv_usage
        return (*loads, member.cached_prefix_tokens(request))

    def _count(self, member):
        """The plain engine writes every token down as it leaves: count what is there."""
        records = member._records[0]
        cores = range(member.first_core, member.first_core + member.pool.cores)
        here = [
            index
            for index, core in enumerate(records.replica)
            if core in cores and records.outcome[index] == UNFINISHED
        ]
        tokens = sum(records.requests[i].prompt_tokens + records.output_tokens[i] for i in here)
        assert (member.load_requests, member.load_tokens) == (len(here), tokens)


def asked_on(monkeypatch, data, engine):
    # A server may go on with a request whose client has gone: rows don't tell what it holds then.
    probe = Probe(counted=engine == "reference" and "clients" not in data)
    monkeypatch.setitem(routers.ROUTERS, "round_robin", lambda spec, rng: probe)
    data["cluster"]["router"] = "round_robin"
    simulate(scenario_from(data), engine=engine)
    return probe.asked


@pytest.mark.parametrize("seed", range(SEEDS))
def test_on_random_scenarios(monkeypatch, seed):
    data = random_scenario(5000 + seed)
    plain = asked_on(monkeypatch, data, "reference")
    assert asked_on(monkeypatch, data, "fast") == plain


@pytest.mark.parametrize("engine", ["sglang", "trtllm"])
@pytest.mark.parametrize("seed", range(6))
def test_on_other_engines(monkeypatch, engine, seed):
    rng = random.Random(seed)
    data = {
        "schema_version": 1,
        "llm": "llama-3.1-8b",
        "gpu": "h100_sxm",
        "engine": {"name": engine},
        "policy": {"max_model_len": 1024, "max_num_seqs": rng.choice([4, 64])},
        "cluster": {"replicas": 2},
        "workload": {
            "kind": "sessions",
            "arrivals": {"kind": "poisson", "rate": rng.choice([2, 20])},
            "num_sessions": 10,
            "turns": 4,
            "system_prompt_tokens": 70,
            "message_tokens": {"kind": "uniform", "low": 1, "high": 60},
            "answer_tokens": {"kind": "uniform", "low": 1, "high": 100},
            "next_turn": {"kind": "after_answer", "think_time_s": rng.choice([0.0, 0.1])},
        },
        "seed": seed,
    }
    plain = asked_on(monkeypatch, data, "reference")
    assert asked_on(monkeypatch, data, "fast") == plain
    assert any(cached for row in plain for *_, cached in row)


@pytest.mark.parametrize("spread", [{"dp": 2}, {"pp": 2}])
def test_on_ranks_and_stages(monkeypatch, spread):
    data = random_scenario(7)
    data["parallelism"] = spread
    plain = asked_on(monkeypatch, data, "reference")
    assert any(tokens for row in plain for _, tokens, *_ in row)
