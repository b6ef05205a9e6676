"""`EngineOptions`: what the typed options of every engine have in common."""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from twin.errors import InputError

Value = Any
"""A value of a configuration file: a scalar, or a mapping of them."""


class EngineOptions(BaseModel):
    """Options of one engine, in its own spelling; None: left to the engine.

    No other key and no value out of range gets past it, so that none can be written.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, populate_by_name=False
    )

    @classmethod
    def checked(cls, given: Mapping[str, Any], where: str) -> Self:
        """Return options, every name and value checked.

        Args:
            given: as they stand in a file or on a command line.
            where: what holds them, for messages.

        Raises:
            InputError: the first that the engine would refuse, or would fail with later.
        """
        try:
            return cls.model_validate(dict(given))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            message = first["msg"].removeprefix("Value error, ")
            message = message[:1].lower() + message[1:]
            if first["type"] != "value_error":  # ours say the value themselves
                message += _not_this(place, first["input"])
            raise InputError(f"{place}: {message}" if place else message, where=where) from None

    def as_dict(self) -> dict[str, Value]:
        """Return what is set, in the order of the fields."""
        return self.model_dump(by_alias=True, exclude_none=True)


def _not_this(place: str, value: Any) -> str:
    """Return `, not 24` of a short value; a model's name may be an address with a password."""
    if place.startswith("model") or not isinstance(value, (bool, int, float, str)):
        return ""
    shown = repr(value)
    return f", not {shown}" if len(shown) <= 40 else ""
