"""JSON schemas of the files users write, for editors."""

from typing import Any

from twin.cluster import ROUTER_KINDS
from twin.policy import EnginePolicy
from twin.scenario import ScenarioFile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def scenario_schema() -> dict[str, Any]:
    """Return the JSON schema of a scenario file.

    Its policy may be the path of a policy file, its router a name.
    """
    schema = ScenarioFile.model_json_schema()
    inline = schema["properties"]["policy"]
    path = {"type": "string", "description": "a policy file, relative to this one"}
    schema["properties"]["policy"] = {"anyOf": [inline, path]}
    cluster = schema["$defs"]["ClusterSpec"]["properties"]
    cluster["router"] = {"anyOf": [{"enum": list(ROUTER_KINDS)}, cluster["router"]]}
    return {"$schema": _DIALECT, **schema}


def policy_schema() -> dict[str, Any]:
    """Return the JSON schema of a policy file, where the schema version must stand."""
    schema = EnginePolicy.model_json_schema()
    return {"$schema": _DIALECT, **schema, "required": ["schema_version"]}
