"""`Setup`: what a forecast is asked of, as plain data that another process can be given."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from twin import __version__
from twin.errors import InputError
from twin.load.inputs import Inputs, read_inputs
from twin.load.resolve import resolve_with
from twin.load.scenario_file import read_scenario_file, scenario_file_from
from twin.scenario import Scenario, ScenarioFile

Value = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Setup:
    """A scenario and what was changed in it.

    Attributes:
        example: name of a built-in scenario; unused where `data` is given.
        data: a user's own scenario, as its file has it; it names no files.
        changes: dotted keys to values, as `--set` takes them.
        private: keys to paths of uploads that the app itself has put down (`workload.path`,
            `llm`); they are in no link and in no command.
        digests: of the contents of those, by key.
    """

    example: str
    data: Mapping[str, Any] | None = None
    changes: Mapping[str, Value] = field(default_factory=dict)
    private: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def own(self) -> bool:
        """Whether it uses anything that its user brought."""
        return self.data is not None or bool(self.private)

    @property
    def where(self) -> str:
        """How messages name it."""
        return self.example if self.data is None else str(self.data.get("name", "scenario"))

    def file(self) -> tuple[ScenarioFile, Path]:
        """Return the validated file and the folder its relative paths start from.

        Raises:
            InputError: its parts do not go together.
        """
        overrides = {**self.private, **self.changes}
        if self.data is None:
            return read_scenario_file(self.example, overrides)
        return scenario_file_from(self.data, Path("."), overrides), Path(".")

    def inputs(self) -> tuple[ScenarioFile, Inputs]:
        """Return the file and what the files hold that it names."""
        file, base = self.file()
        return file, read_inputs(file, base, where=self.where)

    def scenario(self) -> Scenario:
        """Return the scenario, ready to simulate.

        Raises:
            InputError: its parts do not go together.
        """
        file, inputs = self.inputs()
        return resolve_with(file, inputs, where=self.where)

    def without_changes(self) -> "Setup":
        """Return the scenario as its file has it."""
        return Setup(self.example, self.data, {}, self.private, self.digests)

    def digest(self) -> str:
        """Return what tells this setup, in this version of the twin, from any other."""
        parts = [
            __version__,
            self.example if self.data is None else "",
            self.data,
            sorted(self.changes.items()),
            sorted(self.digests.items()),
        ]
        text = json.dumps(parts, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """Return plain data that `Setup(**data)` takes."""
        return asdict(self)


def problem_of(setup: Setup) -> str:
    """Return why a setup cannot be simulated, in one line; empty: it can."""
    try:
        setup.scenario()
    except InputError as error:
        return str(error)
    return ""
