"""`variant`: the scenario of a file with some of its keys changed, without reading it again."""

from collections.abc import Mapping
from typing import Any

from twin.load.overrides import apply
from twin.load.scenario_file import without_nulls
from twin.load.validation import validate
from twin.scenario import ScenarioFile


def variant(file: ScenarioFile, changes: Mapping[str, Any], *, where: str) -> ScenarioFile:
    """Return the file with changes, validated.

    Args:
        file: a validated scenario file; its paths are absolute already.
        changes: dotted keys and their values, as `--set` takes them; None: the default.
        where: how errors name it.

    Raises:
        InputError: the values do not go together.
    """
    if not changes:
        return file
    data = file.model_dump(mode="json", exclude_unset=True)
    return validate(ScenarioFile, without_nulls(apply(data, changes)), where)
