"""The HorizontalPodAutoscaler of a deployment, and the rules that give it its metric."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twin.cluster import AutoscalerSpec
from twin.export.deployment import Deployment, Part
from twin.export.engines.config import EngineFormat

METRICS = {
    "in_flight": "llm_requests_in_flight",
    "waiting": "llm_requests_waiting",
    "kv_usage": "llm_kv_cache_usage",
}
"""What the custom metrics API calls an autoscaler's metric: it takes no colon in a name."""

_INTERVAL_S, _TOLERANCE, _DOWN_S = 15.0, 0.1, 300.0
"""Defaults of Kubernetes' controller: how often, within what nothing is done, how long it waits
before it removes replicas."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """How many replicas there are when.

    Attributes:
        metric: a key of `METRICS`.
        target: of the metric, a replica.
        minimum, maximum: replicas.
        up_s, down_s: stabilisation windows, whole seconds.
        why: where the target comes from, a sentence.
        caveats: what Kubernetes does otherwise.
    """

    metric: str
    target: float
    minimum: int
    maximum: int
    up_s: int
    down_s: int
    why: str
    caveats: tuple[str, ...]


def scaling(deployment: Deployment, part: Part) -> Scaling | None:
    """Return the autoscaler that was simulated, or one that keeps replicas at the forecast's load.

    Without one, the target is the mean of requests in flight a replica: at that many the forecast
    was made. None: nothing was recorded to take it from.
    """
    if part.autoscaler is not None:
        return _simulated(part.autoscaler, part.scenario.file.cluster.startup_s)
    load = requests_in_flight(deployment)
    if load is None:
        return None
    return Scaling(
        metric="in_flight",
        target=load,
        minimum=part.replicas,
        maximum=2 * part.replicas,
        up_s=0,
        down_s=int(_DOWN_S),
        why=f"a replica had {load:g} requests in flight on average in the forecast",
        caveats=_of_a_forecast(deployment, part),
    )


def _of_a_forecast(deployment: Deployment, part: Part) -> tuple[str, ...]:
    startup_s = part.scenario.file.cluster.startup_s
    found = [
        "That target is the mean load of the forecast, requests running and waiting over its time "
        "and its replicas. It is no limit of what a replica can take, and it holds no headroom: "
        "the forecast says nothing of more load than that.",
        f"{_startup(startup_s)} Until then the others carry what comes: set the target lower by "
        "what traffic grows in that time, or minReplicas higher.",
        "No autoscaler was simulated: replicas beyond the forecast's are a safeguard, and "
        f"maxReplicas {2 * part.replicas} is twice its number; set it to what you can pay.",
    ]
    if deployment.summary["slo_met"] is False or deployment.summary["queue_grows"]:
        found.append(
            "The forecast misses its SLO or falls behind: a target at its load does so too. Lower "
            "the target, or simulate a deployment that keeps up."
        )
    return tuple(found)


def requests_in_flight(deployment: Deployment) -> float | None:
    """Return requests running and waiting a replica, mean over the forecast's time."""
    running, waiting = (deployment.summary[name]["mean"] for name in ("running", "waiting"))
    if running is None or waiting is None:
        return None
    return max(0.1, round(float(running + waiting), 1))


def _startup(startup_s: float) -> str:
    """Return how long a pod that is added takes before it serves."""
    if startup_s:
        return f"A pod that is added serves after its start-up, {startup_s:g} s as simulated."
    return (
        "A pod that is added serves after its start-up (image, weights, CUDA graphs: often "
        "minutes), which the scenario does not state (cluster.startup_s)."
    )


def _simulated(spec: AutoscalerSpec, startup_s: float) -> Scaling:
    caveats = [] if startup_s else [f"{_startup(0)} The simulated autoscaler had it at once."]
    if spec.interval_s != _INTERVAL_S:
        caveats.append(
            f"autoscaler.interval_s {spec.interval_s:g}: give the controller "
            f"--horizontal-pod-autoscaler-sync-period {spec.interval_s:g}s."
        )
    if spec.tolerance != _TOLERANCE:
        caveats.append(
            f"autoscaler.tolerance {spec.tolerance:g}: give the controller "
            f"--horizontal-pod-autoscaler-tolerance {spec.tolerance:g}."
        )
    if spec.min_replicas == 0:
        caveats.append(
            "autoscaler.min_replicas 0: minReplicas is 1, Kubernetes keeps one replica unless its "
            "feature gate HPAScaleToZero is on."
        )
    return Scaling(
        metric=spec.metric,
        target=spec.target,
        minimum=max(1, spec.min_replicas),
        maximum=spec.max_replicas,
        up_s=min(3600, round(spec.scale_up_stabilization_s)),
        down_s=min(3600, round(spec.scale_down_stabilization_s)),
        why="as simulated",
        caveats=tuple(caveats),
    )


def horizontal_pod_autoscaler(name: str, scale: Scaling) -> dict[str, Any]:
    """Return the object for the Deployment of the same name."""
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/name": name}},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": scale.minimum,
            "maxReplicas": scale.maximum,
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": METRICS[scale.metric]},
                        "target": {"type": "AverageValue", "averageValue": quantity(scale.target)},
                    },
                }
            ],
            "behavior": {
                "scaleUp": {"stabilizationWindowSeconds": scale.up_s},
                "scaleDown": {"stabilizationWindowSeconds": scale.down_s},
            },
        },
    }


def quantity(value: float) -> str:
    """Return a number as Kubernetes writes quantities: whole, or in thousandths, at least one."""
    thousandths = max(1, round(value * 1000))
    whole, rest = divmod(thousandths, 1000)
    return str(whole) if not rest else f"{thousandths}m"


def adapter_values(form: EngineFormat, scale: Scaling) -> dict[str, Any]:
    """Return Helm values of prometheus-adapter with the rule that gives the metric."""
    running, waiting, usage = form.metrics
    by = "(<<.GroupBy>>)"
    query = {
        "in_flight": f"sum(<<.Series>>{{<<.LabelMatchers>>}}) by {by} + "
        f"sum({waiting}{{<<.LabelMatchers>>}}) by {by}",
        "waiting": f"sum(<<.Series>>{{<<.LabelMatchers>>}}) by {by}",
        "kv_usage": f"avg(<<.Series>>{{<<.LabelMatchers>>}}) by {by}",
    }[scale.metric]
    series = {"in_flight": running, "waiting": waiting, "kv_usage": usage}[scale.metric]
    rule: Mapping[str, Any] = {
        "seriesQuery": f'{series}{{namespace!="",pod!=""}}',
        "resources": {
            "overrides": {"namespace": {"resource": "namespace"}, "pod": {"resource": "pod"}}
        },
        "name": {"as": METRICS[scale.metric]},
        "metricsQuery": query,
    }
    return {"rules": {"default": False, "custom": [dict(rule)]}}
