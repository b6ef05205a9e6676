"""Target kubernetes: Deployment, Service and HorizontalPodAutoscaler of each part."""

import math
from typing import Any

from twin.export.autoscaling import Scaling, adapter_values, horizontal_pod_autoscaler, scaling
from twin.export.deployment import Deployment, Part, slug
from twin.export.documents import yaml_documents, yaml_text
from twin.export.engines.config import EngineConfig, EngineFormat
from twin.export.header import comment, header
from twin.export.servers import engine_of

PORT = 8000
_CONFIG_FOLDER = "/etc/servetwin"
_PROBE_S, _LEAST_START_S = 10, 600
_PODS_GPUS = 8


def kubernetes_files(deployment: Deployment) -> dict[str, str]:
    """Return the manifests, and Helm values that give the autoscaler its metric."""
    form = engine_of(deployment)
    files: dict[str, str] = {}
    for part in deployment.parts:
        config, scale = form.write(part), scaling(deployment, part)
        end = f"-{slug(part.name)}" if part.name else ""
        run = [f"Run: kubectl apply -f kubernetes{end}.yaml"]
        caveats = (*_caveats(deployment, part), *_scaling_caveats(scale, end))
        top = header(deployment, part, form, config, run=run, caveats=caveats)
        files[f"kubernetes{end}.yaml"] = top + yaml_documents(
            objects(deployment, part, form, config, scale)
        )
        if scale is not None:
            files[f"prometheus-adapter{end}.yaml"] = _adapter_text(form, scale, end)
    return files


def object_name(deployment: Deployment, part: Part) -> str:
    """Return the name that all objects of a part have."""
    return f"{deployment.slug}-{slug(part.name)}" if part.name else deployment.slug


def objects(
    deployment: Deployment,
    part: Part,
    form: EngineFormat,
    config: EngineConfig,
    scale: Scaling | None,
) -> list[dict[str, Any]]:
    """Return the objects of a part, plain data."""
    name = object_name(deployment, part)
    found = [_config_map(name, config)] if form.name == "trtllm" else []
    replicas = part.replicas if scale is None else max(part.replicas, scale.minimum)
    found += [_deployment(name, part, form, config, replicas), _service(name)]
    return found if scale is None else [*found, horizontal_pod_autoscaler(name, scale)]


def _labels(name: str) -> dict[str, str]:
    return {"app.kubernetes.io/name": name}


def _deployment(
    name: str, part: Part, form: EngineFormat, config: EngineConfig, replicas: int
) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "containers": [_container(part, form, config)],
        "volumes": [{"name": "shm", "emptyDir": {"medium": "Memory"}}],
    }
    if form.name == "trtllm":
        pod["volumes"].append({"name": "config", "configMap": {"name": name}})
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": _labels(name)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": _labels(name)},
            "template": {"metadata": {"labels": _labels(name)}, "spec": pod},
        },
    }


def _container(part: Part, form: EngineFormat, config: EngineConfig) -> dict[str, Any]:
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}]  # noqa: S108 - where NCCL looks for it
    if form.name == "trtllm":
        mounts.append({"name": "config", "mountPath": _CONFIG_FOLDER})
    limits = {"nvidia.com/gpu": str(part.gpus)}
    return {
        "name": form.name,
        "image": form.image.format(version=part.scenario.file.engine.version),
        "command": form.command(part.model, f"{_CONFIG_FOLDER}/{form.name}.yaml"),
        "args": [*form.arguments(config.options), *_listen(form)],
        "env": [
            {
                "name": "HF_TOKEN",
                "valueFrom": {
                    "secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}
                },
            }
        ],
        "ports": [{"name": "http", "containerPort": PORT}],
        "resources": {"limits": limits, "requests": limits},
        **_probes(part),
        "volumeMounts": mounts,
    }


def _listen(form: EngineFormat) -> list[str]:
    listen = ["--host", "0.0.0.0", "--port", str(PORT)]  # noqa: S104 - in a pod of its own
    return [*listen, "--enable-metrics"] if form.name == "sglang" else listen


def _probes(part: Part) -> dict[str, Any]:
    """A pod may take three times as long to start as was simulated, ten minutes at least."""
    get = {"httpGet": {"path": "/health", "port": "http"}}
    start_s = max(_LEAST_START_S, 3 * part.scenario.file.cluster.startup_s)
    return {
        "startupProbe": {
            **get,
            "periodSeconds": _PROBE_S,
            "failureThreshold": math.ceil(start_s / _PROBE_S),
        },
        "readinessProbe": {**get, "periodSeconds": 5},
    }


def _service(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": _labels(name)},
        "spec": {
            "selector": _labels(name),
            "ports": [{"name": "http", "port": PORT, "targetPort": "http"}],
        },
    }


def _config_map(name: str, config: EngineConfig) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": _labels(name)},
        "data": {"trtllm.yaml": yaml_text(config.options.as_dict())},
    }


def _caveats(deployment: Deployment, part: Part) -> list[str]:
    found = [
        f"Nothing here chooses the node: let it run on {part.scenario.gpu.name} only, for example "
        "by a nodeSelector on nvidia.com/gpu.product (GPU feature discovery).",
        "A token of the Hugging Face hub, if the model needs one, is expected in secret hf-token, "
        "key token; none is written here.",
    ]
    if part.gpus > _PODS_GPUS:
        found.append(
            f"A replica takes {part.gpus} GPUs, and a pod runs on one node: where none has that "
            "many, use a LeaderWorkerSet."
        )
    kind = deployment.scenario.file.cluster.router.kind
    several = len(deployment.parts) > 1 or part.replicas > 1 or part.autoscaler is not None
    if several and kind != "random":
        found.append(
            f"cluster.router {kind} was simulated; a Service sends each connection to a random "
            "pod. Use target llm_d or dynamo, or simulate with cluster.router random."
        )
    if len(deployment.parts) > 1:
        found.append("Each pool has a Service of its own; what is before them is not written here.")
    return found


def _scaling_caveats(scale: Scaling | None, end: str) -> list[str]:
    if scale is None:
        return ["No HorizontalPodAutoscaler: no steps were recorded to take a target from."]
    return [
        f"The HorizontalPodAutoscaler aims at {scale.metric} {scale.target:g} a replica "
        f"({scale.why}). It presumes that Prometheus scrapes the pods on port {PORT}, and "
        f"prometheus-adapter with the rule in prometheus-adapter{end}.yaml.",
        *scale.caveats,
    ]


def _adapter_text(form: EngineFormat, scale: Scaling, end: str) -> str:
    path = "/prometheus/metrics" if form.name == "trtllm" else "/metrics"
    lines = [
        f"The metric that the HorizontalPodAutoscaler in kubernetes{end}.yaml reads.",
        "Run: helm upgrade --install prometheus-adapter "
        f"prometheus-community/prometheus-adapter -f prometheus-adapter{end}.yaml",
        f"Presumes that Prometheus scrapes {form.title}'s {path} on port {PORT} of each pod and "
        "labels its series with namespace and pod. Rules of other applications go beside this one.",
    ]
    return comment(lines) + yaml_text(adapter_values(form, scale))
