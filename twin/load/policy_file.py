"""`EnginePolicy` from a file of its own."""

from pathlib import Path
from typing import Any

from twin.load.documents import read_mapping
from twin.load.migrations import migrate_policy
from twin.load.validation import validate
from twin.policy import EnginePolicy


def read_policy_data(path: Path) -> dict[str, Any]:
    """Return a policy file's plain data at the current schema version."""
    return migrate_policy(read_mapping(path, "policy file"), str(path))


def load_policy(path: str | Path) -> EnginePolicy:
    """Return the policy in a YAML file."""
    data = read_policy_data(Path(path))
    return validate(EnginePolicy, data, str(path))
