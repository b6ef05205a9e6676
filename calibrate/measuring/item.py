"""`Item`: one thing to measure, and `Timed`: what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from hwmodels.measured.tables import PROBES, kernel_of

L2 = Literal["warm", "cold"]


class Key(NamedTuple):
    """What sets a row apart from all others of a measurement."""

    table: str
    shape: tuple[tuple[str, int], ...]
    l2: str


@dataclass(frozen=True, slots=True)
class Item:
    """One kernel or probe at one shape.

    Attributes:
        family: what `--only` chooses by: gemm, prefill, decode, small, or a probe's name.
        table: where its row goes, as `hwmodels.measured.tables` names it.
        shape: the table's axes.
        launches: name in `kernels.catalogue.KERNELS`, or of a probe.
        dtype: number format of the kernel, as `kernels.dtypes` names it; empty for a probe.
        l2: state of the L2 before each launch; None: as the probe has it.
        work_s: about what one launch takes, by bytes and operations.
        box_s: about what measuring it takes.
    """

    family: str
    table: str
    shape: Mapping[str, int] = field(hash=False)
    launches: str
    dtype: str = ""
    l2: L2 | None = "cold"
    work_s: float = 0.0
    box_s: float = 0.1
    is_probe: bool = False

    @property
    def key(self) -> Key:
        """What tells it from other items."""
        return key_of(self.table, self.shape, self.l2 or "")

    def __str__(self) -> str:
        return f"{self.table} " + " ".join(f"{axis}={n}" for axis, n in self.shape.items())


def key_of(table: str, shape: Mapping[str, int], l2: str) -> Key:
    """Return the key of an item or a row; a probe has its L2 state among its axes, if any."""
    return Key(table, tuple(sorted(shape.items())), "" if kernel_of(table) in PROBES else l2)


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of one item's launches.

    Attributes:
        l2: the state they found.
        sha256: of what ran.
    """

    median_s: float
    p90_s: float
    repetitions: int
    l2: L2
    sha256: str


class Unmeasurable(Exception):  # noqa: N818  a result as much as an error
    """An item that cannot be measured here: the reason, in one line."""


class DeviceLost(Exception):  # noqa: N818
    """The GPU no longer answers; nothing more can be measured in this process."""
