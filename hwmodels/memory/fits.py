"""The constants of a GPU: the published table, and over it what a profile measured.

`twin-calibrate` measures a GPU and puts its values in a profile's parameters `memory`.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from hwmodels.memory.constants import CONSTANTS, MemoryFit
from hwmodels.memory.published import H100, MEMORY_FITS, borrowed
from hwmodels.profile import HardwareProfile, ProfileError, find_shipped, open_profile

PRETENDED = "pretended: dry run of a hardware profile"
"""Source of constants that nobody measured, though a profile holds them."""


def memory_fit(
    gpu: str, parameters: Mapping[str, Any] | None = None, *, pretended: bool = False
) -> MemoryFit:
    """Return the constants of a GPU, with what a profile measured in their place.

    Args:
        gpu: its name; one that is not in the table borrows H100's, none of it measured.
        parameters: a profile's `parameters["memory"]`: constants by name. None as a value
            leaves the table's.
        pretended: that profile is a dry run's: what it says was never measured, and may be
            anything that was thought possible without it.

    Raises:
        ProfileError: a name or a value that is none.
    """
    known = MEMORY_FITS.get(gpu) or borrowed(H100, gpu, {})
    given = {name: value for name, value in (parameters or {}).items() if value is not None}
    if not given:
        return known
    for name in given:
        if name not in CONSTANTS:
            raise ProfileError(f"memory parameter {name!r} of {gpu}: no such constant")
    values = {name: _value(name, value, gpu) for name, value in given.items()}
    if pretended:
        return _pretended(known, values)
    return replace(
        known,
        **values,
        sources={**known.sources, **dict.fromkeys(values, "measured: hardware profile")},
        intervals={k: v for k, v in known.intervals.items() if k not in values},
        measured=known.measured | values.keys(),
    )


def _pretended(known: MemoryFit, values: Mapping[str, Any]) -> MemoryFit:
    """Return pretended constants: each with the interval it had, made to hold it too."""
    intervals = dict(known.intervals)
    for name, value in values.items():
        before = known.interval_of(name)
        if before is not None and isinstance(value, int | float):
            intervals[name] = min(before[0], float(value)), max(before[1], float(value))
    return replace(
        known,
        **values,
        sources={**known.sources, **dict.fromkeys(values, PRETENDED)},
        intervals=intervals,
        measured=known.measured - values.keys(),
        pretended=frozenset(values),
    )


def memory_fit_for(
    gpu: str,
    engine: str = "vllm",
    version: str | None = None,
    given: HardwareProfile | None = None,
) -> MemoryFit:
    """Return the constants of a GPU with what a profile measured in their place.

    They are the GPU's, whatever the engine: one without a shipped profile takes vLLM's.

    Args:
        gpu: its name.
        engine: whose shipped profile.
        version: of the engine.
        given: a profile that goes before the shipped ones.

    Raises:
        ProfileError: its parameters are none.
    """
    if given is None:
        path = find_shipped(gpu, engine, version) or find_shipped(gpu, "vllm")
        given = None if path is None else open_profile(path)
    if given is None:
        return memory_fit(gpu)
    return memory_fit(gpu, given.parameters.get("memory"), pretended=given.pretended)


_WHOLE = ("page_bytes", "tlb_entry_pages", "tlb_l1_entries")
_SHARED = ("shared_bytes_per_block", "shared_bytes_per_sm")


def _value(name: str, value: Any, gpu: str) -> Any:
    """Return a constant as the fit holds it."""
    if name == "alignment_speed":
        if not isinstance(value, Mapping) or not value:
            raise ProfileError(f"memory parameter {name!r} of {gpu}: no speeds by class: {value!r}")
        return MappingProxyType({int(k): _number(name, v, gpu) for k, v in value.items()})
    number = _number(name, value, gpu)
    return int(number) if name in _WHOLE + _SHARED else number


def _number(name: str, value: Any, gpu: str) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if not usable or not math.isfinite(value) or value < 0 or (name in _WHOLE and value < 1):
        raise ProfileError(f"memory parameter {name!r} of {gpu}: {value!r} is no usable number")
    return float(value)


__all__ = ["MEMORY_FITS", "MemoryFit", "memory_fit", "memory_fit_for"]
