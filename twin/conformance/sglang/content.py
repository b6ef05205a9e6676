"""Content of recorded requests: real token ids, so that equal prefixes are equal keys."""

from collections.abc import Sequence
from dataclasses import dataclass

from twin.conformance.vllm.content import SAMPLED_TOKEN, KeyTable

EOS_TOKEN = 2
"""What a request samples from its `stop_at` on, whether that ends it or not."""


@dataclass(frozen=True, slots=True)
class TokenContent:
    """Prompt tokens as recorded, then `SAMPLED_TOKEN` up to the first `EOS_TOKEN`.

    Attributes:
        prompt: token ids.
        eos_from: the first output that is the EOS token, from 1; None: none is.
        table: shared by all requests of a recording.
    """

    prompt: Sequence[int]
    eos_from: int | None
    table: KeyTable

    def block_keys(self, block_size: int, num_tokens: int) -> list[int]:
        """See `twin.request.Content.block_keys`."""
        prompt = self.prompt[:num_tokens]
        tokens = [*prompt] + [SAMPLED_TOKEN] * (num_tokens - len(prompt))
        if self.eos_from is not None:
            first = len(self.prompt) + self.eos_from - 1
            tokens[first:] = [EOS_TOKEN] * (len(tokens) - first)
        keys: list[int] = []
        parent = -1
        for end in range(block_size, num_tokens + 1, block_size):
            parent = self.table.number(parent, tuple(tokens[end - block_size : end]))
            keys.append(parent)
        return keys
