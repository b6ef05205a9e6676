"""`Session`: what all rows of one run of `measure` share."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from calibrate.measurement import Measurement
from calibrate.measuring.clocks import Clocks
from calibrate.measuring.item import Item, Timed

ENGINE = "servetwin"
DRY_RUN = "dry-run"
"""Engine of rows whose seconds nobody measured."""


@dataclass(frozen=True, slots=True)
class Session:
    """A GPU and the software on it.

    Attributes:
        facts: of the GPU, as `calibrate.measuring.device` gives them.
        engine: `ENGINE`, or `DRY_RUN`.
    """

    facts: Mapping[str, Any] = field(hash=False)
    engine: str
    engine_version: str
    driver: str
    cuda: str
    versions: Mapping[str, str] = field(hash=False)

    def row(self, item: Item, timed: Timed, clocks: Clocks | None) -> Measurement:
        """Return the row of an item."""
        return Measurement(
            kernel=item.table,
            shape=dict(item.shape),
            seconds_median=timed.median_s,
            seconds_p90=timed.p90_s,
            repetitions=timed.repetitions,
            gpu=self.facts["name"],
            engine=self.engine,
            engine_version=self.engine_version,
            sm_clock_hz=clocks.sm_hz if clocks else None,
            memory_clock_hz=clocks.memory_hz if clocks else None,
            driver=self.driver,
            cuda=self.cuda,
            kernel_sha256=timed.sha256,
            l2=timed.l2,
            measured_on=datetime.now(UTC).date().isoformat(),
            versions=dict(self.versions),
        )


def package_version() -> str:
    """Return this program's version; `0` where it runs without being installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("servetwin")
    except PackageNotFoundError:
        return "0"
