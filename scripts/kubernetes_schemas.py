"""Cut the schemas of a few kinds out of those of a whole Kubernetes release.

    pip download --no-deps kubernetes-validate==1.37.0
    python scripts/kubernetes_schemas.py kubernetes_validate-1.37.0-py3-none-any.whl

Writes tests/unit/export/kubernetes-1.37.json: the strict schemas of the kinds that are exported and
all that they refer to, without descriptions. The package's schemas are made of Kubernetes' OpenAPI
document (Apache-2.0).
"""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

KINDS = {
    "Deployment": "deployment-apps-v1",
    "Service": "service-v1",
    "ConfigMap": "configmap-v1",
    "HorizontalPodAutoscaler": "horizontalpodautoscaler-autoscaling-v2",
}
RELEASE = "v1.37.0"
FOLDER = f"kubernetes_validate/kubernetes-json-schema/{RELEASE}-local-strict"
TARGET = Path(__file__).resolve().parents[1] / "tests/unit/export/kubernetes-1.37.json"


def main() -> None:
    """Write the schemas."""
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        whole = json.loads(wheel.read(f"{FOLDER}/_definitions.json"))["$defs"]
        tops = {
            kind: json.loads(wheel.read(f"{FOLDER}/{name}.json")) for kind, name in KINDS.items()
        }
    for top in tops.values():
        top["properties"].pop("status", None)  # the cluster writes it
    needed, pending = {}, list(tops.values())
    while pending:
        for name in references(pending.pop()):
            if name not in needed:
                needed[name] = plain(whole[name])
                pending.append(whole[name])
    data = {
        "source": f"kubernetes-validate 1.37.0, {RELEASE}-local-strict, without descriptions",
        "kinds": {kind: plain(top) for kind, top in tops.items()},
        "$defs": dict(sorted(needed.items())),
    }
    TARGET.write_text(json.dumps(data, separators=(",", ":"), sort_keys=True) + "\n")
    print(f"wrote {TARGET}: {len(needed)} definitions, {TARGET.stat().st_size:,} bytes")


def references(node: Any) -> set[str]:
    """Return the definitions that a schema refers to."""
    if isinstance(node, list):
        return {name for item in node for name in references(item)}
    if not isinstance(node, dict):
        return set()
    own = node.get("$ref")
    inner = {name for value in node.values() for name in references(value)}
    return inner | ({own.rpartition("/")[2]} if isinstance(own, str) else set())


def plain(node: Any) -> Any:
    """Return a schema without descriptions, references made local."""
    if isinstance(node, list):
        return [plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {}
    for key, value in node.items():
        if key == "description" and isinstance(value, str):
            continue
        if key == "$ref" and isinstance(value, str):
            found[key] = f"#/$defs/{value.rpartition('/')[2]}"
        elif not key.startswith(("x-kubernetes", "$")):
            found[key] = plain(value)
    return found


if __name__ == "__main__":
    main()
