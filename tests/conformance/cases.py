"""What is put before the engines' own parsers: kept exports, random ones, and bad values.

Runs in the project's environment and writes plain files, which `accept_vllm.py` and
`accept_sglang.py` read in the engines' environment:

    python -m tests.conformance.cases FOLDER
"""

import hashlib
import json
import random
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.random_policies import random_scenario
from tests.golden.export.cases import BASE, CASES, SUMMARY, kept
from twin.export.deployment import deployment_of
from twin.export.targets import EXPORTERS
from twin.load import scenario_from

ENGINES = ("vllm", "sglang")
RANDOM_CASES = 40

BAD: dict[str, list[tuple[str, str]]] = {
    "vllm": [
        ("a misspelt option", "max-num-sqes: 64\n"),
        ("no KV dtype", "kv-cache-dtype: fp9\n"),
        ("too much memory", "gpu-memory-utilization: 1.5\n"),
        ("no block", "block-size: 0\n"),
        ("a watermark of all blocks", "watermark: 1.0\n"),
        ("no scheduling policy", "scheduling-policy: lifo\n"),
        ("no sequence", "max-num-seqs: 0\n"),
        ("a budget below the sequences", "max-num-seqs: 512\nmax-num-batched-tokens: 256\n"),
        ("no rank", "tensor-parallel-size: 0\n"),
        ("no quantisation", "quantization: fp7\n"),
        ("no graph mode", "compilation-config:\n  cudagraph_mode: SOMETIMES\n"),
        ("an option that is gone", "swap-space: 4\n"),
    ],
    "sglang": [
        ("a misspelt option", "max-running-request: 64\n"),
        ("no KV dtype", "kv-cache-dtype: fp9\n"),
        ("no schedule policy", "schedule-policy: lifo\n"),
        ("no eviction policy", "radix-eviction-policy: random2\n"),
        ("text for a number", "max-running-requests: many\n"),
        ("no quantisation", "quantization: fp7\n"),
        ("a deprecated flag in a file", "disable-cuda-graph: true\n"),
    ],
}
"""Of each engine: what is wrong, and the YAML. The parsers have to refuse every one."""

MODEL = {"vllm": "model: meta-llama/Llama-3.1-8B\n", "sglang": "model-path: meta-llama/Llama\n"}


def plain_text(text: str) -> str:
    """Return a file without its comments: what an engine is told."""
    return "".join(f"{line}\n" for line in text.splitlines() if not line.startswith("#"))


def digest(text: str) -> str:
    """Return the SHA-256 of a file without its comments."""
    return hashlib.sha256(plain_text(text).encode()).hexdigest()


def kept_digests(engine: str) -> dict[str, str]:
    """Return the digest of every kept file of an engine that its parser judges."""
    return {
        f"{case}/{path.name}": digest(path.read_text(encoding="utf-8"))
        for case, path in kept()
        if case.startswith(f"{engine}-") and path.suffix in (".yaml", ".sh")
        and not path.name.startswith("prometheus")
    }  # fmt: skip


def arguments_in(name: str, text: str) -> Iterator[list[str]]:
    """Yield the words that each server in a kept file is started with; of YAML configs, nothing."""
    if name.endswith(".sh"):
        yield shlex.split(plain_text(text).replace("\\\n", " "))
        return
    for document in yaml.safe_load_all(text):
        for container in _containers(document):
            words = [*container.get("command", ()), *container.get("args", ())]
            if container.get("modelCommand") == "vllmServe":
                words = ["vllm", "serve", document["modelArtifacts"]["name"], *words]
            if words:
                yield words


def _containers(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        for key, child in node.items():
            if key == "containers":
                yield from child
            else:
                yield from _containers(child)
    elif isinstance(node, list):
        for child in node:
            yield from _containers(child)


def random_files(engine: str) -> Iterator[tuple[str, str]]:
    """Yield (name, YAML) of random policies of an engine, the same ones every time."""
    for number in range(RANDOM_CASES):
        rng = random.Random(f"{engine} {number}")
        scenario = scenario_from({**BASE, **random_scenario(engine, rng)})
        files = EXPORTERS[engine].files(deployment_of(scenario, "random.yaml", SUMMARY))
        yield f"random/{number:02}.yaml", files[f"{engine}.yaml"]


def cases_of(engine: str) -> Iterator[dict[str, Any]]:
    """Yield what the engine's parser gets: a name, `yaml` or `words`, and whether it is right."""
    for case, path in kept():
        if not case.startswith(f"{engine}-") or path.name.startswith("prometheus"):
            continue
        text, name = path.read_text(encoding="utf-8"), f"{case}/{path.name}"
        if CASES[case][0] == engine and path.suffix == ".yaml":
            yield {"name": name, "yaml": text, "right": True}
        for words in arguments_in(path.name, text):
            yield {"name": name, "words": words, "right": True}
    for name, text in random_files(engine):
        yield {"name": name, "yaml": text, "right": True}
    for what, text in BAD[engine]:
        yield {"name": f"bad: {what}", "yaml": MODEL[engine] + text, "right": False}


def main() -> None:
    """Write each engine's cases as JSON."""
    folder = Path(sys.argv[1])
    for engine in ENGINES:
        data = {"digests": kept_digests(engine), "cases": list(cases_of(engine))}
        (folder / f"{engine}.json").write_text(json.dumps(data), encoding="utf-8")


if __name__ == "__main__":
    main()
