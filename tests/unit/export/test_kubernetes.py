"""Manifests against the schemas of Kubernetes 1.37 (`scripts/kubernetes_schemas.py`)."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.conformance.random_policies import random_scenario
from tests.golden.export.cases import BASE, CASES, FLEET, SUMMARY, exported
from twin.cluster import AutoscalerSpec
from twin.export.autoscaling import quantity, scaling
from twin.export.deployment import Deployment, deployment_of, slug
from twin.export.kubernetes import kubernetes_files
from twin.load import scenario_from

SCHEMAS = json.loads((Path(__file__).parent / "kubernetes-1.37.json").read_text())
KINDS = ("Deployment", "Service", "HorizontalPodAutoscaler")


def complaints(document: dict[str, Any]) -> list[str]:
    schema = {**SCHEMAS["kinds"][document["kind"]], "$defs": SCHEMAS["$defs"]}
    validator = jsonschema.Draft202012Validator(schema)
    return [error.message for error in validator.iter_errors(document)]


def deployment(changes: dict[str, Any], summary: dict[str, Any] = SUMMARY) -> Deployment:
    return deployment_of(scenario_from({**BASE, **changes}), "mine.yaml", summary)


def documents(files: dict[str, str]) -> list[dict[str, Any]]:
    text = next(iter(files.values()))
    return list(yaml.safe_load_all(text))


def of_kind(files: dict[str, str], kind: str) -> dict[str, Any]:
    return next(one for one in documents(files) if one["kind"] == kind)


@pytest.mark.parametrize("case", sorted(c for c, (t, _) in CASES.items() if t == "kubernetes"))
def test_kept_manifests_are_valid(case: str) -> None:
    for name, text in exported(case).items():
        if name.startswith("kubernetes"):
            found = list(yaml.safe_load_all(text))
            assert {one["kind"] for one in found} >= set(KINDS)
            assert [complaint for one in found for complaint in complaints(one)] == []


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("seed", range(5))
def test_manifests_of_random_policies_are_valid(engine: str, seed: int) -> None:
    files = kubernetes_files(deployment(random_scenario(engine, random.Random(seed))))
    assert [complaint for one in documents(files) for complaint in complaints(one)] == []


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("Deployment", ("spec", "replicas"), "two"),
        ("Deployment", ("spec", "template", "spec", "container"), []),
        ("Deployment", ("apiVersion",), "apps/v2"),
        ("Service", ("spec", "ports", 0, "port"), "http"),
        ("Service", ("spec", "selectors"), {}),
        ("HorizontalPodAutoscaler", ("spec", "maxReplicas"), None),
        ("HorizontalPodAutoscaler", ("spec", "metrics", 0, "pods", "target", "kind"), "x"),
    ],
)
def test_the_schemas_refuse_what_is_wrong(kind: str, path: tuple[Any, ...], value: Any) -> None:
    wrong = copy.deepcopy(of_kind(exported("vllm-0.33.0/kubernetes"), kind))
    node = wrong
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    assert complaints(wrong)


def test_the_autoscaler_is_the_one_that_was_simulated() -> None:
    files = kubernetes_files(deployment({"cluster": FLEET}))
    spec = of_kind(files, "HorizontalPodAutoscaler")["spec"]
    assert (spec["minReplicas"], spec["maxReplicas"]) == (2, 8)
    pods = spec["metrics"][0]["pods"]
    assert pods["metric"]["name"] == "llm_requests_waiting"
    assert pods["target"]["averageValue"] == "2500m"
    assert spec["behavior"]["scaleUp"]["stabilizationWindowSeconds"] == 30
    head = files["kubernetes.yaml"]
    assert "--horizontal-pod-autoscaler-sync-period 30s" in head.replace("\n#     ", " ")
    rule = yaml.safe_load(files["prometheus-adapter.yaml"])["rules"]["custom"][0]
    assert rule["seriesQuery"].startswith("vllm:num_requests_waiting{")
    assert rule["name"]["as"] == pods["metric"]["name"]


def test_without_an_autoscaler_the_target_is_the_forecasts_load() -> None:
    found = scaling(deployment({}), deployment({}).parts[0])
    assert found is not None
    assert (found.metric, found.target) == ("in_flight", SUMMARY["running"]["mean"] + 0.5)
    assert (found.minimum, found.maximum) == (1, 2)


def test_a_forecast_that_misses_its_slo_is_no_good_target_and_says_so() -> None:
    late = kubernetes_files(deployment({}, {**SUMMARY, "slo_met": False}))["kubernetes.yaml"]
    fine = kubernetes_files(deployment({}))["kubernetes.yaml"]
    assert "misses its SLO" in late
    assert "misses its SLO" not in fine


def test_without_recorded_steps_there_is_no_autoscaler() -> None:
    nothing = {**SUMMARY, "running": {"mean": None, "max": None}}
    files = kubernetes_files(deployment({}, nothing))
    assert list(files) == ["kubernetes.yaml"]
    assert {one["kind"] for one in documents(files)} == {"Deployment", "Service"}


def test_a_fleet_that_may_be_empty_starts_with_one() -> None:
    cluster = {"replicas": 0, "autoscaler": {"target": 4, "min_replicas": 0, "max_replicas": 2}}
    files = kubernetes_files(deployment({"cluster": cluster}))
    assert of_kind(files, "Deployment")["spec"]["replicas"] == 1
    assert of_kind(files, "HorizontalPodAutoscaler")["spec"]["minReplicas"] == 1


def test_a_slow_start_is_given_three_times_its_time() -> None:
    def failures(startup_s: float) -> int:
        files = kubernetes_files(deployment({"cluster": {"startup_s": startup_s}}))
        pod = of_kind(files, "Deployment")["spec"]["template"]["spec"]
        probe = pod["containers"][0]["startupProbe"]
        return probe["failureThreshold"] * probe["periodSeconds"]

    assert failures(200) == 600
    assert failures(201) == 610


@pytest.mark.parametrize(
    ("value", "text"), [(2, "2"), (2.5, "2500m"), (0.8, "800m"), (0.0001, "1m"), (32.1, "32100m")]
)
def test_quantities(value: float, text: str) -> None:
    assert quantity(value) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Chat on H100!", "chat-on-h100"), ("70b", "llm-70b"), ("", "llm"), ("___", "llm"),
        ("a" * 80, "a" * 40), ("über", "ber"),
    ],
)  # fmt: skip
def test_names_are_those_that_kubernetes_takes(name: str, text: str) -> None:
    assert slug(name) == text


def test_the_autoscalers_metrics_are_all_known() -> None:
    for metric in AutoscalerSpec.model_fields["metric"].annotation.__args__:
        spec = {"metric": metric, "target": 0.5, "max_replicas": 2}
        files = kubernetes_files(deployment({"cluster": {"autoscaler": spec}}))
        assert complaints(of_kind(files, "HorizontalPodAutoscaler")) == []


def head(changes: dict[str, Any]) -> str:
    text = next(iter(kubernetes_files(deployment(changes)).values()))
    return " ".join(text.replace("\n#", " ").split())


def test_the_target_says_what_it_is_and_that_a_pod_takes_time_to_start() -> None:
    text = head({})
    assert "aims at in_flight 24.5 a replica" in text
    assert "the mean load of the forecast" in text
    assert "it holds no headroom" in text
    assert "which the scenario does not state (cluster.startup_s)" in text
    assert "start-up, 90 s as simulated." in head({"cluster": {"startup_s": 90}})


def test_a_simulated_autoscaler_without_start_up_is_told() -> None:
    started = {**FLEET, "startup_s": 0}
    assert "The simulated autoscaler had it at once." in head({"cluster": started})
    assert "had it at once" not in head({"cluster": FLEET})
