"""Content of recorded requests: real token ids, so that equal prefixes are equal keys."""

from collections.abc import Sequence
from dataclasses import dataclass

SAMPLED_TOKEN = 7
"""Every generated token of a recording."""


class KeyTable:
    """Numbers chained blocks: equal parent and equal tokens get the same number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}

    def number(self, parent: int, tokens: tuple[int, ...]) -> int:
        """Return the key of the block with these tokens after the block `parent` (-1: none)."""
        return self._numbers.setdefault((parent, tokens), len(self._numbers))


@dataclass(frozen=True, slots=True)
class TokenContent:
    """Prompt tokens as recorded, then nothing but `SAMPLED_TOKEN`.

    A stop token is another one, but nothing is computed after it, so no full block holds it.

    Attributes:
        prompt: token ids.
        table: shared by all requests of a recording.
    """

    prompt: Sequence[int]
    table: KeyTable

    def block_keys(self, block_size: int, num_tokens: int) -> list[int]:
        """See `twin.request.Content.block_keys`."""
        keys: list[int] = []
        parent = -1
        for end in range(block_size, num_tokens + 1, block_size):
            tokens = tuple(self.prompt[end - block_size : end])
            tokens += (SAMPLED_TOKEN,) * (block_size - len(tokens))
            parent = self.table.number(parent, tokens)
            keys.append(parent)
        return keys
