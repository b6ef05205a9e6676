"""`Runs`: simulations of one scenario's variants, which share its files and its prices."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from twin.engine.pricing import Pricing
from twin.engine.result import SimulationResult
from twin.engine.run import quickest_engine, simulate
from twin.errors import ServetwinError
from twin.load.inputs import Inputs
from twin.load.resolve import resolve_with
from twin.recording import RecordingSpec
from twin.scenario import Scenario, ScenarioFile

Progress = Callable[[int, int], None]
"""Called with (runs done, runs in all at most); the last call has what it came to."""


class StoppedError(ServetwinError):
    """The caller asked to stop before the work was done."""

    def __init__(self) -> None:
        super().__init__("stopped")


@dataclass(slots=True)
class Runs:
    """Simulates variants of a scenario one after another.

    Attributes:
        inputs: the scenario's files, read.
        progress: is told after each run.
        should_stop: is asked before each run.
        expected: runs in all, as far as can be said.
        done: runs so far.
    """

    inputs: Inputs
    progress: Progress | None = None
    should_stop: Callable[[], bool] | None = None
    expected: int = 0
    done: int = 0
    _pricing: Pricing = field(default_factory=Pricing)

    def run(self, file: ScenarioFile) -> tuple[Scenario, SimulationResult]:
        """Simulate a variant; steps are recorded even where the file says not to.

        Args:
            file: of the same network, GPU, engine and parallelism as every other.

        Raises:
            InputError: its parts do not go together.
            StoppedError: `should_stop` says so.
        """
        if self.should_stop is not None and self.should_stop():
            raise StoppedError
        if not file.recording.stride:
            file = file.model_copy(update={"recording": RecordingSpec(kind="full")})
        workload = replace(self.inputs.workload, spec=file.workload)
        inputs = replace(self.inputs, workload=workload)
        scenario = resolve_with(file, inputs, where=file.name)
        result = simulate(scenario, costs=self._pricing.of(scenario), engine=quickest_engine())
        self.done += 1
        self._tell(max(self.expected, self.done))
        return scenario, result

    def finish(self) -> None:
        """Tell that there will be no more."""
        if self.done < self.expected:
            self._tell(self.done)

    def _tell(self, total: int) -> None:
        if self.progress is not None:
            self.progress(self.done, total)
