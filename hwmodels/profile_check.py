"""Whether what a profile holds can price anything: checked once where a user names the file."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hwmodels.measured.tables import COLUMNS, FROM_ZERO, kernel_of
from hwmodels.profile import Column, HardwareProfile, ProfileError, Table

_TEXTS = ("name", "gpu", "engine", "engine_version", "kind")
_NUMBERS = ("stream", "engine_all_reduce_limit_bytes")
_WORDS = ("fitted_on", "measured")
_UNBOUNDED = "p_norm"
"""A hard maximum: JSON has no infinity, so null stands for it."""
_LONGEST_GAP_S = 1.0


def check_profile(profile: HardwareProfile) -> None:
    """Check texts, parameters and tables.

    Raises:
        ProfileError: something of a wrong kind, a number that is none, or rows that nobody can
            have measured.
    """
    for name in _TEXTS:
        if not isinstance(getattr(profile, name), str):
            raise ProfileError(f"its {name} is {getattr(profile, name)!r}; a text is needed")
    for name in ("parameters", "facts"):
        if not isinstance(getattr(profile, name), Mapping):
            raise ProfileError(f"its {name} are no names and values")
    for family, value in profile.parameters.items():
        if value is not None:
            _check_parameters(family, value)
    for name, table in profile.tables.items():
        _check_table(name, table)


def _check_parameters(family: str, value: Any) -> None:
    if family in _NUMBERS:
        _check_number(family, value)
    elif not isinstance(value, Mapping):
        raise ProfileError(f"its parameters of {family} are no names and values")
    elif family in ("gemm", "prefill", "decode", "launch"):
        for name, number in value.items():
            if name not in _WORDS and not (number is None and name.endswith(_UNBOUNDED)):
                _check_number(f"{family}.{name}", number)


def _check_number(name: str, value: Any) -> None:
    usable = isinstance(value, int | float) and not isinstance(value, bool)
    if not usable or not math.isfinite(value) or value < 0:
        raise ProfileError(f"its parameter {name} is {value!r}; a number from 0 on is needed")
    if name.endswith("_s") and not name.endswith("_per_s") and value > _LONGEST_GAP_S:
        raise ProfileError(f"its parameter {name} is {value:g} s; at most 1 s can be meant")


def _check_table(name: str, table: Table) -> None:
    axes = COLUMNS.get(kernel_of(name))
    wanted = {"seconds", *(axes or ())}
    missing = sorted(wanted - set(table))
    if missing:
        raise ProfileError(f"table {name} lacks the column {missing[0]}")
    for column, values in table.items():
        if values.ndim != 1 or values.dtype.kind not in "iuf" or not len(values):
            raise ProfileError(f"table {name}: column {column} holds no list of numbers")
        if column in wanted:
            _check_column(f"table {name}: column {column}", column, values)


def _check_column(where: str, column: str, values: Column) -> None:
    if not np.isfinite(values).all():
        raise ProfileError(f"{where} holds a number that is not finite")
    least: Any = values.min()
    if least < 0 or (least == 0 and column not in FROM_ZERO):
        raise ProfileError(f"{where} holds {least:g}; only more than 0 can be measured")
