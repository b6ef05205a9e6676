"""`Strict`: the model of everything a user writes."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Strict(BaseModel):
    """Frozen, without unknown keys, NaN or infinity; true and false are flags, never numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _flags_are_flags(cls, data: Any) -> Any:
        # Python counts a bool as an int and pydantic reads "yes" and 1 as true: a slip either way.
        if isinstance(data, dict):
            for name, value in data.items():
                field = cls.model_fields.get(name) if isinstance(name, str) else None
                if field is not None:
                    _check_flag(name, value, _is_flag(field.annotation))
        return data


def _check_flag(name: str, value: Any, wants_flag: bool) -> None:
    if isinstance(value, bool) and not wants_flag:
        raise ValueError(f"{name}: give a number or a name, not true or false")
    if wants_flag and not isinstance(value, bool) and value is not None:
        raise ValueError(f"{name}: give true or false, not {value!r:.40}")


def _is_flag(annotation: Any) -> bool:
    return annotation is bool or bool in getattr(annotation, "__args__", ())
