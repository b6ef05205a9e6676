"""What a run keeps of its steps and of the gaps between tokens."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from twin.strict import Strict

_EVERY = 100


class RecordingSpec(Strict):
    """All of them, every so manieth of each engine core, or none."""

    kind: Literal["full", "sampled", "none"] = "full"
    every: Annotated[int, Field(ge=2, le=10**6, description="of sampled: one kept of so many")] = (
        _EVERY
    )

    @model_validator(mode="after")
    def _every_of_sampled(self) -> "RecordingSpec":
        if self.kind != "sampled" and self.every != _EVERY:
            raise ValueError(f"every: goes with kind sampled, not {self.kind}")
        return self

    @property
    def stride(self) -> int:
        """One is kept of so many; 0: none."""
        return {"full": 1, "sampled": self.every, "none": 0}[self.kind]


def _by_name(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Recording = Annotated[RecordingSpec, BeforeValidator(_by_name)]
"""A kind by name, or a mapping of `kind` and `every`."""
