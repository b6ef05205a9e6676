"""The keys under which a prompt's blocks stand in prefix caches, worked out once for many."""

from twin.request import Request


class PromptKeys:
    """Remembers the keys of the last request that was asked about."""

    def __init__(self) -> None:
        self._request: Request | None = None
        self._by_size: dict[int, list[int]] = {}

    def of(self, request: Request, key_tokens: int) -> list[int]:
        """Return a key for each full block of a prompt but its last token, which no cache serves.

        Args:
            request: the request; without content it has no key that another's block could have.
            key_tokens: tokens a key stands for.
        """
        if request.content is None:
            return []
        if self._request is not request:
            self._request = request
            self._by_size = {}
        keys = self._by_size.get(key_tokens)
        if keys is None:
            keys = request.content.block_keys(key_tokens, request.prompt_tokens - 1)
            self._by_size[key_tokens] = keys
        return keys
