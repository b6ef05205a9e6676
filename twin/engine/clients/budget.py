"""A bound on the retries of all clients together."""

from twin.workload.clients_spec import RetryBudget


class Budget:
    """gRPC's retry throttling.

    Source: gRFC A6 "gRPC Retry Design", section "Throttling Retry Attempts and Hedged RPCs".

    Attributes:
        tokens: what is left.
    """

    def __init__(self, spec: RetryBudget) -> None:
        self._spec = spec
        self.tokens = spec.max_tokens

    def succeeded(self) -> None:
        """An attempt succeeded."""
        self.tokens = min(self._spec.max_tokens, self.tokens + self._spec.token_ratio)

    def failed(self) -> None:
        """An attempt failed."""
        self.tokens = max(0.0, self.tokens - 1.0)

    @property
    def allows(self) -> bool:
        """Whether a failed attempt may be followed by another."""
        return self.tokens > self._spec.max_tokens / 2
