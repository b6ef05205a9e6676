"""Clusters in scenarios: what is refused, and pools as scenarios of their own."""

import pytest
import yaml

from twin.engine import simulate
from twin.errors import InputError
from twin.load import scenario_from
from twin.load.schema import scenario_schema
from twin.report.html import scenario_yaml
from twin.report.metrics import summarise
from twin.report.terminal import figure_rows, setup_line

POOLS = {
    "router": "least_requests",
    "pools": [
        {"name": "big", "replicas": 2, "policy": {"max_num_seqs": 16}},
        {"gpu": "l40s", "policy": {"max_model_len": 2048, "block_size": 32}, "startup_s": 3},
    ],
}


def scenario(cluster, **more):
    return scenario_from(
        {
            "schema_version": 1,
            "llm": "llama-3.1-8b",
            "gpu": "h100_sxm",
            "policy": {"max_model_len": 4096, "max_num_batched_tokens": 4096},
            "workload": {
                "kind": "synthetic",
                "arrivals": {"kind": "poisson", "rate": 20},
                "num_requests": 60,
                "prompt_tokens": 100,
                "output_tokens": 20,
            },
            "cluster": cluster,
            **more,
        }
    )


def test_a_pool_is_a_scenario_with_its_own_gpu_and_policy():
    big, other = scenario(POOLS).pools
    assert (big.name, other.name) == ("big", "pool-1")
    assert (big.replicas, other.replicas) == (2, 1)
    assert (big.scenario.gpu.name, other.scenario.gpu.name) == ("h100_sxm", "l40s")
    assert (big.startup_s, other.startup_s) == (0.0, 3.0)
    first, second = big.scenario.policy, other.scenario.policy
    assert (first.max_num_seqs, first.max_model_len, first.block_size) == (16, 4096, 16)
    assert (second.max_model_len, second.block_size) == (2048, 32)
    assert second.max_num_batched_tokens == 4096  # as the scenario says
    assert big.scenario.num_gpu_blocks > other.scenario.num_gpu_blocks


def test_results_tell_pools_apart():
    loaded = scenario(POOLS)
    result = simulate(loaded)
    assert result.pool_of_core.tolist() == [0, 0, 1]
    assert set(result.requests.replica.tolist()) == {0, 1, 2}
    blocks = [pool.scenario.num_gpu_blocks for pool in loaded.pools]
    assert [pool.kv_blocks for pool in result.pools] == blocks
    assert result.usable_of_core.tolist() == [blocks[0] - 1, blocks[0] - 1, blocks[1] - 1]
    summary = summarise(result)
    told = summary["cluster"]["pools"]
    assert [pool["gpu"] for pool in told] == ["h100_sxm", "l40s"]
    assert sum(pool["requests"] for pool in told) == 60
    assert summary["gpu_s"] == pytest.approx(3 * result.simulated_s)
    share = result.steps.used_blocks / result.usable_of_core[result.steps.replica]
    assert summary["kv_cache_usage"]["max"] == share.max()
    assert "2 × h100_sxm + 1 × l40s" in setup_line(result.inputs)
    assert [what for what, _ in figure_rows(summary)][-3:] == [
        "Replicas",
        "Pool big",
        "Pool pool-1",
    ]


def test_the_scenario_of_a_result_runs_again_as_it_is():
    cluster = {
        **POOLS,
        "failures": {"scheduled": [{"at_s": 1.0, "replica": 2, "down_s": 0.5}]},
    }
    result = simulate(scenario(cluster))
    again = simulate(scenario_from(yaml.safe_load(scenario_yaml(result.inputs))))
    assert again.requests.finish_s.tobytes() == result.requests.finish_s.tobytes()
    assert again.inputs == result.inputs
    assert len(result.events) > 0


def test_one_pool_gives_what_replicas_give():
    plain, pooled = scenario({"replicas": 2}), scenario({"pools": [{"replicas": 2}]})
    one, other = simulate(plain), simulate(pooled)
    assert one.requests.finish_s.tobytes() == other.requests.finish_s.tobytes()
    assert summarise(one) == summarise(other)


def test_dp_and_tp_may_differ_between_pools():
    pools = [{"parallelism": {"dp": 2}}, {"parallelism": {"tp": 2}}, {}]
    result = simulate(scenario({"pools": pools, "router": "random"}))
    fleet = result.fleet
    assert fleet.first_core.tolist() == [0, 2, 3]
    assert fleet.cores.tolist() == [2, 1, 1]
    assert fleet.gpus.tolist() == [2, 2, 1]
    assert set(result.requests.replica.tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"router": "round_robbin"}, ["cluster.router", "did you mean 'round_robin'?"]),
        ({"router": {"kind": "prefix_aware", "cache": 1}}, ["cluster.router.cache"]),
        ({"router": {"kind": "random", "seed": 1}}, ["cluster.router.seed"]),
        ({"router": 3}, ["cluster.router"]),
        ({"replicas": 0}, ["replicas", "give at least 1"]),
        ({"replicas": 2, "pools": [{}]}, ["replicas", "each pool"]),
        ({"pools": []}, ["cluster.pools"]),
        ({"pools": [{"replicas": 0}]}, ["pools[0].replicas", "no autoscaler"]),
        ({"pools": [{"gpu": "h100_sxn"}]}, ["cluster.pools[0], gpu", "did you mean 'h100_sxm'?"]),
        ({"pools": [{"name": "a"}, {"name": "a"}]}, ["pools[1]", "two pools are called 'a'"]),
        ({"pools": [{"replicas": 600}, {"replicas": 600}]}, ["1200 replicas in all"]),
        (
            {"failures": {"scheduled": [{"at_s": 1, "replica": 1}]}},
            ["scheduled[0].replica is 1 of 1 replicas"],
        ),
        ({"failures": {"random": {"mtbf_s": 0, "mttr_s": 1}}}, ["cluster.failures.random.mtbf_s"]),
        ({"autoscaler": {"target": 1}}, ["cluster.autoscaler.max_replicas", "missing"]),
        ({"autoscaler": {"target": 1, "max_replicas": 2, "min_replicas": 3}}, ["is above"]),
        ({"replicas": 3, "autoscaler": {"target": 1, "max_replicas": 2}}, ["1 to 2"]),
        (
            {"autoscaler": {"metric": "kv_usage", "target": 80, "max_replicas": 2}},
            ["kv_usage", "above 1"],
        ),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(cluster, words):
    with pytest.raises(InputError) as caught:
        scenario(cluster)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message


def test_the_schema_takes_a_router_by_name():
    cluster = scenario_schema()["$defs"]["ClusterSpec"]["properties"]
    assert "least_requests" in cluster["router"]["anyOf"][0]["enum"]
