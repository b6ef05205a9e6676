"""`Order`: a setup and what a study shall find in it, as data, as a problem, as a command."""

import json
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from app.answers.setup import Setup, Value
from twin.errors import InputError
from twin.files import write_text
from twin.load.scenario_file import read_scenario_file

if TYPE_CHECKING:
    from twin.search.problem import SearchProblem

TRIALS = 50
"""Of a study, unless another number is asked for."""
MOST_TRIALS = 1_000
"""Of a study that is started in the app."""
GOODPUT = "goodput_per_gpu_hour"
ANY = "any"

_SCENARIO, _ORDER, _INPUT = "scenario.yaml", "order.json", "input"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a study shall do.

    Attributes:
        objectives: names in `twin.search.objectives.OBJECTIVES`; the first decides.
        trials: how many.
        engine: whose configuration the result has to be in; empty: the scenario's; or `any`.
        knobs: keys that may be turned; None: all that have an effect.
        gpus: most in all; None: as many as the scenario takes.
        usd_per_gpu_hour: price of a GPU; None: cost is told in GPU-hours.
    """

    objectives: tuple[str, ...] = (GOODPUT,)
    trials: int = TRIALS
    engine: str = ""
    knobs: tuple[str, ...] | None = None
    gpus: int | None = None
    usd_per_gpu_hour: float | None = None

    def options(self) -> list[str]:
        """Return the options of `twin search` that say so; defaults are left out."""
        words: list[str] = []
        if self.objectives != (GOODPUT,):
            words += [word for name in self.objectives for word in ("--objective", name)]
        words += ["--trials", str(self.trials)]
        if self.engine:
            words += ["--engine", self.engine]
        if self.gpus is not None:
            words += ["--gpus", str(self.gpus)]
        if self.usd_per_gpu_hour is not None:
            words += ["--price", repr(self.usd_per_gpu_hour)]
        return words + [word for key in self.knobs or () for word in ("--knob", key)]


@dataclass(frozen=True, slots=True)
class Order:
    """A study as it is asked for.

    Attributes:
        setup: the scenario; paths in it are files that the app put down itself.
        wanted: what to do with it.
    """

    setup: Setup
    wanted: Wanted

    def problem(self, folder: Path) -> "SearchProblem":
        """Return what is searched, checked for contradictions.

        Args:
            folder: private; a scenario of the visitor's own is put there to be read.

        Raises:
            InputError: what contradicts what, without a path of this machine.
        """
        from twin.search.candidates import gpus_of
        from twin.search.problem import Limits
        from twin.search.setting import make_problem

        wanted = self.wanted
        try:
            path, overrides = self._scenario(folder), {**self.setup.private, **self.setup.changes}
            file, _ = read_scenario_file(path, overrides)
            gpus = gpus_of(file) if wanted.gpus is None else wanted.gpus
            return make_problem(
                path,
                overrides,
                engine=wanted.engine or file.engine.name,
                objectives=wanted.objectives,
                limits=Limits(gpus),
                knobs=wanted.knobs,
                usd_per_gpu_hour=wanted.usd_per_gpu_hour,
            )
        except InputError as error:
            raise _without_paths(error, self.setup, folder) from None

    def arguments(self, inputs: str = _INPUT) -> list[str]:
        """Return what `twin search` is told, `--out` left out.

        Args:
            inputs: folder of the visitor's own files: that of a study which `write` has filled.
        """
        setup = self.setup
        name = setup.example if setup.data is None else f"{inputs}/{_SCENARIO}"
        words = ["search", name]
        for key, path in setup.private.items():
            words += ["--set", f"{key}={inputs}/{Path(path).name}"]
        for key, value in setup.changes.items():
            words += ["--set", f"{key}={_yaml(value)}"]
        return words + self.wanted.options()

    def command(self) -> str:
        """Return the command that does the same elsewhere, own files in the current folder."""
        return shlex.join(["twin", *self.arguments("."), "--out", "search"])

    def write(self, folder: Path) -> None:
        """Put the order and copies of all that it needs into a study's folder."""
        inputs = folder / _INPUT
        inputs.mkdir(mode=0o700)
        kept = {}
        for key, path in self.setup.private.items():
            shutil.copyfile(path, inputs / Path(path).name)
            kept[key] = f"{_INPUT}/{Path(path).name}"
        order = replace(self, setup=replace(self.setup, private=kept))
        order._scenario(inputs)
        write_text(folder / _ORDER, json.dumps(asdict(order), indent=1))

    def _scenario(self, folder: Path) -> str:
        """Return what names the scenario; one that is a visitor's own is written first."""
        if self.setup.data is None:
            return self.setup.example
        path = folder / _SCENARIO
        if not path.exists():
            write_text(path, yaml.safe_dump(dict(self.setup.data), sort_keys=False))
        return str(path)


@dataclass(frozen=True, slots=True)
class Space:
    """What can be chosen for a study of a setup.

    Attributes:
        engine: the scenario's.
        gpus: that the scenario takes, the least budget.
        knobs: what each is, by key: those that have an effect.
        dropped: why the others have none, by key.
    """

    engine: str
    gpus: int
    knobs: dict[str, str]
    dropped: dict[str, str]


def space_of(order: Order, folder: Path) -> Space:
    """Return what can be chosen.

    Args:
        order: the study; its knobs are passed over.
        folder: as in `Order.problem`.

    Raises:
        InputError: what contradicts what.
    """
    from twin.search.candidates import gpus_of

    problem = replace(order, wanted=replace(order.wanted, knobs=None)).problem(folder)
    return Space(
        problem.file.engine.name,
        gpus_of(problem.file),
        {knob.key: knob.about for knob in problem.knobs},
        dict(problem.dropped),
    )


def own_gpus(order: Order) -> int:
    """Return the GPUs that a setup takes.

    Raises:
        InputError: its parts do not go together.
    """
    from twin.search.candidates import gpus_of

    return gpus_of(order.setup.file()[0])


def objectives() -> dict[str, str]:
    """Return what can be wanted: titles by name."""
    from twin.search.objectives import OBJECTIVES

    return {name: one.title for name, one in OBJECTIVES.items()}


def read_order(folder: Path) -> Order:
    """Return the order in a study's folder.

    Raises:
        InputError: there is none that can be read.
    """
    try:
        data: dict[str, Any] = json.loads((folder / _ORDER).read_text())
        setup, wanted = data["setup"], data["wanted"]
        setup["private"] = {key: str(folder / path) for key, path in setup["private"].items()}
        wanted["objectives"] = tuple(wanted["objectives"])
        wanted["knobs"] = None if wanted["knobs"] is None else tuple(wanted["knobs"])
        return Order(Setup(**setup), Wanted(**wanted))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError("cannot be read", where="this study", remedy="start another one") from None


def told(setup: Setup) -> str:
    """Return a setup in a few words."""
    changes = ", ".join(f"{key.rpartition('.')[2]} {_yaml(v)}" for key, v in setup.changes.items())
    files = ", ".join({"workload.path": "own trace", "llm": "own model"}[k] for k in setup.private)
    return ", ".join(part for part in (setup.where, files, changes) if part)


def _yaml(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _without_paths(error: InputError, setup: Setup, folder: Path) -> InputError:
    names: Mapping[str, str] = {
        str(folder / _SCENARIO): "scenario",
        **{path: "the trace" if key == "workload.path" else "the model"
           for key, path in setup.private.items()},
    }  # fmt: skip
    parts = [error.problem, error.where, error.remedy]
    for path, name in names.items():
        parts = [part.replace(path, name) for part in parts]
    return InputError(parts[0], where=parts[1], remedy=parts[2])
