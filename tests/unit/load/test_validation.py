from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, model_validator

from twin.errors import InputError
from twin.load.validation import validate


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Fast(Part):
    kind: Literal["fast"] = "fast"
    block_size: int = Field(16, gt=0)


class Slow(Part):
    kind: Literal["slow"] = "slow"
    like: Literal["fast", "slow"] = "slow"
    delay_s: float = 1.0

    @model_validator(mode="after")
    def _not_too_slow(self) -> "Slow":
        if self.delay_s > 10:
            raise ValueError("too slow; lower delay_s")
        return self


class Root(Part):
    name: str
    part: Annotated[Fast | Slow, Field(discriminator="kind")] = Fast()
    stages: Annotated[list[Fast], Field(max_length=2)] = []


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ({"nam": "x"}, "f: unknown key 'nam' (and 1 more); did you mean 'name'?"),
        ({}, "f: key 'name' is missing"),
        (
            {"name": "x", "part": {"kind": "fast", "blok_size": 3}},
            "f: unknown key 'part.blok_size'; did you mean 'block_size'?",
        ),
        (
            {"name": "x", "part": {"kind": "slow", "block_size": 3}},
            "f: unknown key 'part.block_size'; choose one of delay_s, kind, like",
        ),
        (
            {"name": "x", "stages": [{}, {"block_size": 0}]},
            "f: stages.1.block_size: input should be greater than 0, not 0",
        ),
        (
            {"name": "x", "part": {"kind": "slow", "delay_s": float("nan")}},
            "f: part.delay_s: input should be a finite number, not nan",
        ),
        (
            {"name": "x", "part": {"kind": "fast", "like": "slow"}},
            "f: unknown key 'part.like'; choose one of block_size, kind",
        ),
        ({"name": "x", "stages": [{}] * 3}, "f: stages: the list is too long"),
        ({"name": "x", "part": 3}, "f: part: input should be keys and values, not 3"),
        ({"name": "x", "part": {}}, "f: key 'part.kind' is missing"),
        (
            {"name": "x", "part": {"kind": "fats"}},
            "f: part: unknown kind 'fats'; did you mean 'fast'?",
        ),
        (
            {"name": "x", "part": {"kind": "slow", "delay_s": 99.0}},
            "f: part: too slow; lower delay_s",
        ),
    ],
)
def test_one_line_names_key_and_remedy(data, line):
    with pytest.raises(InputError) as caught:
        validate(Root, data, "f")
    assert str(caught.value) == line


def test_valid_data_pass():
    assert validate(Root, {"name": "x", "part": {"kind": "slow"}}, "f").part == Slow()
