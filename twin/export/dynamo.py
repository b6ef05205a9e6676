"""Target dynamo: a DynamoGraphDeployment, NVIDIA Dynamo's frontend and router before the engine.

Shaped after `examples/backends/*/deploy/v1beta1/agg_router.yaml` of github.com/ai-dynamo/dynamo,
of release 1.3.1, whose images it names.
"""

from typing import Any

from twin.export.deployment import Deployment, Part, slug
from twin.export.documents import yaml_documents, yaml_text
from twin.export.engines.config import EngineConfig, EngineFormat
from twin.export.header import header
from twin.export.servers import engine_of

_RELEASE = "1.3.1"
_RUNTIMES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrtllm"}
_ROUTERS = {"round_robin": "round-robin", "random": "random", "prefix_aware": "kv"}
_EVENTS = '{"publisher":"zmq","topic":"kv-events","endpoint":"tcp://*:20080"%s}'
_CONFIG = "/etc/servetwin"


def dynamo_files(deployment: Deployment) -> dict[str, str]:
    """Return the manifest: one frontend, a worker component for each part."""
    form = engine_of(deployment)
    configs = [form.write(part) for part in deployment.parts]
    top = "".join(
        header(
            deployment,
            part,
            form,
            config,
            run=["Run: kubectl apply -f dynamo.yaml (with the Dynamo operator installed)"],
            caveats=_caveats(deployment, form, part),
        )
        for part, config in zip(deployment.parts, configs, strict=True)
    )
    maps = _config_maps(deployment, configs) if form.name == "trtllm" else []
    return {"dynamo.yaml": top + yaml_documents([*maps, _graph(deployment, form, configs)])}


def _graph(
    deployment: Deployment, form: EngineFormat, configs: list[EngineConfig]
) -> dict[str, Any]:
    kind = deployment.scenario.file.cluster.router.kind
    mode = [{"name": "DYN_ROUTER_MODE", "value": _ROUTERS[kind]}] if kind in _ROUTERS else []
    frontend = {"name": "main", "image": _image(form), **({"env": mode} if mode else {})}
    workers = [
        _worker(deployment, form, part, config)
        for part, config in zip(deployment.parts, configs, strict=True)
    ]
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": deployment.slug},
        "spec": {
            "components": [
                {
                    "name": "Frontend",
                    "type": "frontend",
                    "replicas": 1,
                    "podTemplate": {"spec": {"containers": [frontend]}},
                },
                *workers,
            ]
        },
    }


def _worker(
    deployment: Deployment, form: EngineFormat, part: Part, config: EngineConfig
) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "main",
        "image": _image(form),
        "command": ["python3", "-m", f"dynamo.{form.name}"],
        "args": _arguments(deployment, form, part, config),
        "envFrom": [{"secretRef": {"name": "hf-token-secret"}}],
        "resources": {"limits": {"nvidia.com/gpu": str(part.gpus)}},
    }
    pod: dict[str, Any] = {"containers": [container]}
    if form.name == "trtllm":
        container["volumeMounts"] = [{"name": "config", "mountPath": _CONFIG}]
        pod["volumes"] = [{"name": "config", "configMap": {"name": _map_name(deployment, part)}}]
    return {
        "name": f"Worker-{slug(part.name)}" if part.name else "Worker",
        "type": "worker",
        "replicas": part.replicas,
        "podTemplate": {"spec": pod},
    }


def _arguments(
    deployment: Deployment, form: EngineFormat, part: Part, config: EngineConfig
) -> list[str]:
    watched = deployment.scenario.file.cluster.router.kind == "prefix_aware"
    if form.name == "trtllm":
        file = f"{_CONFIG}/{_map_name(deployment, part)}.yaml"
        publish = ["--publish-events-and-metrics"] if watched else []
        return ["--model-path", part.model, "--extra-engine-args", file, *publish]
    model = [] if form.name == "sglang" else ["--model", part.model]
    more = ',"enable_kv_cache_events":true' if form.name == "vllm" else ""
    events = ["--kv-events-config", _EVENTS % more] if watched else []
    return [*model, *form.arguments(config.options), *events]


def _config_maps(deployment: Deployment, configs: list[EngineConfig]) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": _map_name(deployment, part)},
            "data": {f"{_map_name(deployment, part)}.yaml": yaml_text(config.options.as_dict())},
        }
        for part, config in zip(deployment.parts, configs, strict=True)
    ]


def _map_name(deployment: Deployment, part: Part) -> str:
    return f"{deployment.slug}-{slug(part.name)}" if part.name else deployment.slug


def _image(form: EngineFormat) -> str:
    return f"nvcr.io/nvidia/ai-dynamo/{_RUNTIMES[form.name]}-runtime:{_RELEASE}"


def _caveats(deployment: Deployment, form: EngineFormat, part: Part) -> list[str]:
    cluster = deployment.scenario.file.cluster
    kind = cluster.router.kind
    found = [
        f"The images are Dynamo {_RELEASE}'s, with the {form.title} that it brings: hold its "
        f"version against {part.scenario.file.engine.version}, which was simulated.",
        "A token of the Hugging Face hub is expected in secret hf-token-secret (HF_TOKEN).",
        f"Nothing here chooses the node: let it run on {part.scenario.gpu.name} only.",
    ]
    if kind == "prefix_aware":
        found.append(
            "cluster.router prefix_aware stands for Dynamo's KV router, which weighs cached blocks "
            "against load by its own formula; the thresholds simulated are not told to it."
        )
    elif kind not in _ROUTERS:
        found.append(f"cluster.router {kind} is none of Dynamo's: its default takes its place.")
    if part.autoscaler is not None:
        found.append("cluster.autoscaler is not configured here; Dynamo's planner is its own.")
    return found
