"""The service-level objective a run is judged by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from twin.errors import InputError


@dataclass(frozen=True, slots=True)
class Slo:
    """Limits at a percentile; a limit that is None is not asked for.

    Attributes:
        ttft_s: time to first token, seconds.
        tpot_s: time per output token after the first, seconds.
        percentile: of requests, in (0, 100].
    """

    ttft_s: float | None = None
    tpot_s: float | None = None
    percentile: float = 99.0

    @property
    def asked(self) -> bool:
        """Whether any limit is set."""
        return self.ttft_s is not None or self.tpot_s is not None


class SloLike(Protocol):
    """Anything with an objective's fields, such as the scenario's part of that name."""

    @property
    def ttft_s(self) -> float | None:
        """Limit on time to first token."""
        ...

    @property
    def tpot_s(self) -> float | None:
        """Limit on time per output token."""
        ...

    @property
    def percentile(self) -> float:
        """Percentile the limits hold at."""
        ...


def read_slo(data: Mapping[str, Any] | SloLike | None) -> Slo:
    """Return the objective in `{ttft_s, tpot_s, percentile}`; None or `{}` asks for nothing.

    An object with these attributes does as well as a mapping.

    Raises:
        InputError: a limit is not positive or the percentile is outside (0, 100].
    """
    if data is not None and not isinstance(data, Mapping):
        data = {name: getattr(data, name) for name in ("ttft_s", "tpot_s", "percentile")}
    fields = data or {}
    percentile = fields.get("percentile")
    slo = Slo(
        _limit(fields, "ttft_s"),
        _limit(fields, "tpot_s"),
        99.0 if percentile is None else _number(percentile, "slo.percentile"),
    )
    if not 0 < slo.percentile <= 100:
        raise InputError(
            f"{slo.percentile:g} is not a percentile",
            where="slo.percentile",
            remedy="write a number above 0 and up to 100, for example 99",
        )
    return slo


def _limit(fields: Mapping[str, Any], key: str) -> float | None:
    value = fields.get(key)
    if value is None:
        return None
    seconds = _number(value, f"slo.{key}")
    if not seconds > 0:
        raise InputError(
            f"{value!r} is not a limit", where=f"slo.{key}", remedy="write seconds above 0"
        )
    return seconds


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{value!r} is not a number", where=where, remedy="write a plain number")
    return float(value)
