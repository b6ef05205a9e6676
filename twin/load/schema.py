"""JSON schemas of the files users write, for editors."""

from typing import Any

from twin.policy import EnginePolicy
from twin.scenario import ScenarioFile

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def scenario_schema() -> dict[str, Any]:
    """Return the JSON schema of a scenario file; its policy may be the path of a policy file."""
    schema = ScenarioFile.model_json_schema()
    inline = schema["properties"]["policy"]
    path = {"type": "string", "description": "a policy file, relative to this one"}
    schema["properties"]["policy"] = {"anyOf": [inline, path]}
    return {"$schema": _DIALECT, **schema}


def policy_schema() -> dict[str, Any]:
    """Return the JSON schema of a policy file, where the schema version must stand."""
    schema = EnginePolicy.model_json_schema()
    return {"$schema": _DIALECT, **schema, "required": ["schema_version"]}
