"""A column of block hashes: in every row of a file, or in none."""

from pathlib import Path
from typing import Any

from twin.errors import InputError
from twin.workload.readers.fields import place
from twin.workload.segments import SegmentBuilder, SegmentTable


class BlockColumn:
    """Collects the block hashes of each row into a `SegmentTable`."""

    def __init__(self, key: str, path: Path) -> None:
        self._key = key
        self._path = path
        self._builder = SegmentBuilder()
        self._present: bool | None = None

    def hashes(self, record: dict[str, Any], row: int) -> list[int] | None:
        """Return the row's hashes; None when the file has none.

        Raises:
            InputError: some rows have them and some do not, or they are not integers.
        """
        values = record.get(self._key)
        present = values is not None
        if self._present is None:
            self._present = present
        if present != self._present:
            raise InputError(
                f"{self._key} {'appears here first' if present else 'is missing'}",
                where=place(self._path, row),
                remedy="give it in every row or in none",
            )
        if values is None:
            return None
        if not isinstance(values, list) or not set(map(type, values)) <= {int}:
            raise InputError(
                f"{self._key} is not a list of integers",
                where=place(self._path, row),
                remedy="one integer a block of the prompt",
            )
        return values

    def add(self, hashes: list[int], block_tokens: int, prompt_tokens: int) -> None:
        """Take one row's hashes, checked by the caller."""
        self._builder.add_blocks(hashes, block_tokens, prompt_tokens)

    def table(self) -> SegmentTable | None:
        """Return what was collected; None when the file has no hashes."""
        return self._builder.build() if self._present else None
