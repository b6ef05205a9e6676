"""Target llm_d: values of the chart llm-d-modelservice, whose router watches the servers' caches.

Keys are those of the chart's `values.yaml` (github.com/llm-d-incubation/llm-d-modelservice). The
chart starts vLLM; its inference scheduler stands in a chart of its own.
"""

from typing import Any

from twin.export.autoscaling import scaling
from twin.export.deployment import Deployment, Part, slug
from twin.export.documents import yaml_text
from twin.export.engines.config import EngineConfig
from twin.export.engines.vllm import VLLM
from twin.export.header import header
from twin.export.servers import engine_of
from twin.llm.weights import weights_bytes

_PORT = 8000


def llm_d_files(deployment: Deployment) -> dict[str, str]:
    """Return Helm values for each part.

    Raises:
        InputError: the scenario's engine is not vLLM.
    """
    engine_of(deployment, "vllm")
    files: dict[str, str] = {}
    for part in deployment.parts:
        config = VLLM.write(part)
        end = f"-{slug(part.name)}" if part.name else ""
        name = f"llm-d-values{end}.yaml"
        release = f"{deployment.slug}{end}"
        run = [
            f"Run: helm install {release} llm-d-modelservice/llm-d-modelservice -f {name}",
        ]
        top = header(deployment, part, VLLM, config, run=run, caveats=_caveats(deployment, part))
        files[name] = top + yaml_text(_values(release, part, config))
    return files


def _values(release: str, part: Part, config: EngineConfig) -> dict[str, Any]:
    spec = part.scenario.file.parallelism
    gpus = {"nvidia.com/gpu": str(part.gpus)}
    parallel = {"tensor": spec.tp, "data": spec.dp, "dataLocal": spec.dp}
    container = {
        "name": "vllm",
        "image": VLLM.image.format(version=part.scenario.file.engine.version),
        "modelCommand": "vllmServe",
        "args": _arguments(config),
        "ports": [{"containerPort": _PORT, "name": "metrics", "protocol": "TCP"}],
        "resources": {"limits": gpus, "requests": gpus},
        "mountModelVolume": True,
    }
    return {
        "modelArtifacts": {
            "name": part.model,
            "uri": f"hf://{part.model}",
            "size": _volume(part),
            "authSecretName": "hf-token",
            "labels": {"llm-d.ai/inferenceServing": "true", "llm-d.ai/model": release},
        },
        "accelerator": {"type": "nvidia"},
        "routing": {"servicePort": _PORT, "proxy": {"enabled": False}},
        "decode": {
            "create": True,
            "replicas": part.replicas,
            "parallelism": {key: size for key, size in parallel.items() if size != 1},
            "containers": [container],
            "monitoring": {"podmonitor": {"enabled": True}},
        },
        "prefill": {"create": False},
    }


def _arguments(config: EngineConfig) -> list[str]:
    """Leave out what the chart adds itself from `parallelism`."""
    words, found = VLLM.arguments(config.options), list[str]()
    skip = ("--tensor-parallel-size", "--data-parallel-size")
    for at, word in enumerate(words):
        if word not in skip and (not at or words[at - 1] not in skip):
            found.append(word)
    return found


def _volume(part: Part) -> str:
    """A quarter more than the checkpoint, in whole GiB, for the download."""
    return f"{-(-5 * weights_bytes(part.scenario.arch) // (4 * 2**30))}Gi"


def _caveats(deployment: Deployment, part: Part) -> list[str]:
    router = deployment.scenario.file.cluster.router.kind
    found = [
        "llm-d's inference scheduler is a release of its own (chart inferencepool); it scores "
        f"servers by prefix, queue and KV use, and was simulated as {router}.",
        "A token of the Hugging Face hub is expected in secret hf-token, key HF_TOKEN.",
        f"Nothing here chooses the node: let it run on {part.scenario.gpu.name} only.",
    ]
    scale = scaling(deployment, part)
    if part.autoscaler is not None and scale is not None:
        found.append(
            f"cluster.autoscaler ({scale.metric} {scale.target:g} a replica, {scale.minimum} to "
            f"{scale.maximum}) is not configured here; the target kubernetes has an autoscaler."
        )
    return found
