"""Pydantic's findings as one line: file, key, what is wrong, and the nearest known key."""

import re
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from twin.errors import InputError
from twin.naming import remedy_for

_TAG = re.compile("'([^']*)'")
_PLAIN = {
    "model_type": "input should be keys and values",
    "model_attributes_type": "input should be keys and values",
    "dict_type": "input should be keys and values",
    "tuple_type": "input should be a list",
    "invalid_key": "keys should be names",
    "too_short": "the list is too short",
    "too_long": "the list is too long",
}
"""Findings that pydantic words for programmers."""

Model = TypeVar("Model", bound=BaseModel)


def validate(model: type[Model], data: Any, where: str) -> Model:
    """Return `data` as a `model`, or an `InputError` for the first thing wrong with it."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _one_line(error, model, where) from None


def _one_line(error: ValidationError, model: type[BaseModel], where: str) -> InputError:
    details = error.errors(include_url=False)
    # An unknown key explains more than the "missing" it often causes.
    first = next((d for d in details if d["type"] == "extra_forbidden"), details[0])
    place, known, tags = _walk(model, first["loc"])
    key = ".".join(part for part in place if part not in tags)
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    if first["type"] == "extra_forbidden":
        return InputError(
            f"unknown key {key!r}{more}", where=where, remedy=remedy_for(place[-1], known)
        )
    if first["type"] == "missing":
        return InputError(f"key {key!r} is missing{more}", where=where)
    if first["type"] == "union_tag_not_found":
        missing = f"{key}.{_discriminator(first)}" if key else _discriminator(first)
        return InputError(f"key {missing!r} is missing{more}", where=where)
    if first["type"] == "union_tag_invalid":
        tag, choices = first["ctx"]["tag"], _TAG.findall(first["ctx"]["expected_tags"])
        return InputError(
            f"{key}: unknown {_discriminator(first)} {tag!r}{more}",
            where=where,
            remedy=remedy_for(tag, choices),
        )
    text = f"{key}: {_message(first)}" if key else _message(first)
    return InputError(f"{text}{more}", where=where)


def _message(detail: ErrorDetails) -> str:
    if detail["type"] == "string_type" and isinstance(detail.get("input"), (int, float)):
        return f"{detail['input']!r} must be text; put it in quotes"
    message = _PLAIN.get(detail["type"]) or detail["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    value = detail.get("input")
    if isinstance(value, (str, int, float, bool)) or value is None:
        shown = repr(value)
        said = isinstance(value, str) and shown in message
        if len(shown) <= 60 and not said:
            return f"{message}, not {shown}"
    return message


def _discriminator(detail: ErrorDetails) -> str:
    return str(detail["ctx"]["discriminator"]).strip("'")


def _walk(
    model: type[BaseModel], location: tuple[int | str, ...]
) -> tuple[list[str], list[str], set[str]]:
    """Follow an error's location; return (its parts, the keys known there, union tags in it)."""
    place, tags = [str(part) for part in location], set[str]()
    candidates: list[type[BaseModel]] = [model]
    for part in place[:-1]:
        fields = [c.model_fields[part] for c in candidates if part in c.model_fields]
        if fields:
            candidates = [m for f in fields for m in _models_in(f.annotation)]
        elif not part.isdigit():
            tags.add(part)
            candidates = [c for c in candidates if _has_tag(c, part)] or candidates
    known = sorted({name for c in candidates for name in c.model_fields})
    # What a whole part of a union gets wrong is reported under its tag.
    if place and place[-1] not in known and any(_has_tag(c, place[-1]) for c in candidates):
        tags.add(place[-1])
    return place, known, tags


def _has_tag(model: type[BaseModel], tag: str) -> bool:
    """Whether a model is the part of a union that a tag stands for; all unions go by `kind`."""
    field = model.model_fields.get("kind")
    return field is not None and tag in getattr(field.annotation, "__args__", ())


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    # A PEP 695 or TypeAliasType alias keeps its target in __value__.
    target = getattr(annotation, "__value__", None)
    arguments = (target,) if target is not None else getattr(annotation, "__args__", ())
    return [found for argument in arguments for found in _models_in(argument)]
