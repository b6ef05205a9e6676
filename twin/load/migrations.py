"""Schema versions: older files are brought up to date, unknown ones refused, none misread."""

from collections.abc import Callable, Mapping
from typing import Any

from twin.errors import InputError
from twin.policy import POLICY_SCHEMA_VERSION
from twin.scenario import SCENARIO_SCHEMA_VERSION

Migration = Callable[[dict[str, Any]], dict[str, Any]]

# From version n to n + 1, keyed by n. Version 1 is the first, so both are empty.
SCENARIO_MIGRATIONS: Mapping[int, Migration] = {}
POLICY_MIGRATIONS: Mapping[int, Migration] = {}


def migrate(
    data: dict[str, Any], current: int, migrations: Mapping[int, Migration], where: str
) -> dict[str, Any]:
    """Return `data` at schema version `current`; the input is left alone."""
    version = data.get("schema_version")
    if version is None:
        raise InputError(
            "schema_version is missing",
            where=where,
            remedy=f"add `schema_version: {current}` if it is written for this version",
        )
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise InputError(
            f"schema_version {version!r} is not a whole number from 1 to {current}", where=where
        )
    if version > current:
        raise InputError(
            f"schema_version {version} is newer than this program reads ({current})",
            where=where,
            remedy="upgrade servetwin",
        )
    while version < current:
        data = {**migrations[version](data), "schema_version": version + 1}
        version += 1
    return data


def migrate_scenario(data: dict[str, Any], where: str) -> dict[str, Any]:
    """Bring a scenario up to date."""
    return migrate(data, SCENARIO_SCHEMA_VERSION, SCENARIO_MIGRATIONS, where)


def migrate_policy(data: dict[str, Any], where: str) -> dict[str, Any]:
    """Bring a policy up to date."""
    return migrate(data, POLICY_SCHEMA_VERSION, POLICY_MIGRATIONS, where)
