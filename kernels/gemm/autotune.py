"""Choosing tile configurations by timing them, once a shape; the choices outlive the process."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from triton.runtime.errors import OutOfResources

from kernels.errors import KernelInputError
from kernels.gemm.config import GemmConfig
from kernels.timing import L2State, Timer

SCHEMA = 1
_REPETITIONS = 5
"""Launches a candidate: the differences that matter are larger than the spread of five."""


@dataclass(frozen=True, slots=True)
class GemmKey:
    """What a choice holds for: one kernel at one shape.

    Attributes:
        kernel: its name in the catalogue.
        dtype: of A, and of B where that differs: "float16", "fp8", "float16-int4-128" …
    """

    kernel: str
    dtype: str
    m: int
    n: int
    k: int


@dataclass(frozen=True, slots=True)
class Tuned:
    """The fastest configuration of a shape, and its median launch."""

    config: GemmConfig
    median_s: float


class GemmTuner:
    """Times candidates where a shape is new, and remembers.

    Args:
        timer: how launches are timed.
        gpu: name of the GPU they run on, kept with the choices.
        l2: state of the L2 before each launch; weights of a serving step come from HBM.
    """

    def __init__(self, timer: Timer, gpu: str, *, l2: L2State = L2State.COLD) -> None:
        self.gpu = gpu
        self._timer = timer
        self._l2 = l2
        self._tuned: dict[GemmKey, Tuned] = {}

    def best(
        self,
        key: GemmKey,
        candidates: Iterable[GemmConfig],
        launch_of: Callable[[GemmConfig], Callable[[], object]],
    ) -> GemmConfig:
        """Return the fastest candidate, timing them unless the shape is known.

        Args:
            key: kernel and shape.
            candidates: tried in this order; of equals the first wins.
            launch_of: makes a candidate's launch, workspace allocated.

        Raises:
            KernelInputError: no candidate fits the GPU.
        """
        if key not in self._tuned:
            self._tuned[key] = self._search(key, candidates, launch_of)
        return self._tuned[key].config

    def known(self) -> dict[GemmKey, Tuned]:
        """Return every choice made or read so far."""
        return dict(self._tuned)

    def _search(
        self,
        key: GemmKey,
        candidates: Iterable[GemmConfig],
        launch_of: Callable[[GemmConfig], Callable[[], object]],
    ) -> Tuned:
        best: Tuned | None = None
        for config in candidates:
            try:
                timing = self._timer.time(launch_of(config), l2=self._l2, repetitions=_REPETITIONS)
            except OutOfResources:
                continue  # more shared memory or registers than this part has
            if best is None or timing.median_s < best.median_s:
                best = Tuned(config, timing.median_s)
        if best is None:
            raise KernelInputError(f"no candidate of {key} fits {self.gpu}")
        return best

    def to_json(self) -> str:
        """Return the choices as JSON, in the order they were made."""
        rows = [
            {**asdict(key), "config": asdict(tuned.config), "median_s": tuned.median_s}
            for key, tuned in self._tuned.items()
        ]
        return json.dumps({"schema": SCHEMA, "gpu": self.gpu, "tuned": rows}, indent=1) + "\n"

    def read_json(self, text: str) -> None:
        """Take over choices made earlier on the same kind of GPU.

        Raises:
            KernelInputError: not such a file, or of another GPU.
        """
        try:
            content = json.loads(text)
            schema, gpu, rows = content["schema"], content["gpu"], content["tuned"]
            known = {_key(row): Tuned(GemmConfig(**row["config"]), row["median_s"]) for row in rows}
        except (ValueError, KeyError, TypeError) as error:
            raise KernelInputError(f"not a file of tuned configurations: {error!r}") from None
        if schema != SCHEMA:
            raise KernelInputError(f"tuned configurations of schema {schema}; {SCHEMA} is needed")
        if gpu != self.gpu:
            raise KernelInputError(f"tuned on {gpu}; this is {self.gpu}: tune again")
        self._tuned.update(known)


def _key(row: dict[str, object]) -> GemmKey:
    return GemmKey(**{name: row[name] for name in GemmKey.__slots__})  # type: ignore[arg-type]
