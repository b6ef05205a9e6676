"""A table of steps that is made when somebody looks at it."""

from collections.abc import Callable
from typing import Any

from twin.engine.result import StepTable


class LaterStepTable(StepTable):
    """As `StepTable`; its columns are made together, when the first is asked for.

    A run of decode steps is a few numbers until then.

    Args:
        steps: how many there are.
        make: makes the table.
    """

    __slots__ = ("_make", "_steps")

    def __init__(self, steps: int, make: Callable[[], StepTable]) -> None:
        object.__setattr__(self, "_steps", steps)
        object.__setattr__(self, "_make", make)

    def __len__(self) -> int:
        return self._steps  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        if name not in StepTable.__slots__:
            raise AttributeError(name)
        table = self._make()
        for column in StepTable.__slots__:
            object.__setattr__(self, column, getattr(table, column))
        object.__setattr__(self, "_make", None)
        return getattr(table, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, ({column: getattr(self, column) for column in StepTable.__slots__},)


def _made(columns: dict[str, Any]) -> StepTable:
    return StepTable(**columns)
