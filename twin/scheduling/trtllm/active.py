"""`ActiveRequest`: a request the executor has fetched."""

from dataclasses import dataclass

from twin.request import RequestState


@dataclass(slots=True, eq=False)
class ActiveRequest:
    """Progress of one fetched request, in the terms of TensorRT-LLM.

    It is a context until its prompt is computed, then a generation. `state.placeholders` is the
    sampled token not yet known; `state.num_computed` the tokens its KV sequence holds.

    Attributes:
        state: what the rest of the engine sees.
        context_tokens: the prompt, tokens; a pause adds what was generated so far.
        foreseen_output: generated tokens at which it ends unless a stop token comes first.
        total_blocks: KV blocks to completion.
    """

    state: RequestState
    context_tokens: int
    foreseen_output: int
    total_blocks: int

    @property
    def is_context(self) -> bool:
        """Whether part of the prompt is still to be computed."""
        return self.state.num_computed < self.context_tokens

    @property
    def is_first_chunk(self) -> bool:
        """Whether nothing of the prompt has been given blocks yet."""
        return not self.state.blocks

    @property
    def is_to_complete(self) -> bool:
        """GENERATION_TO_COMPLETE: the token in flight is its last, so no step takes it."""
        state = self.state
        in_flight = state.placeholders
        return in_flight > 0 and state.num_output + in_flight >= self.foreseen_output

    @property
    def remaining_context(self) -> int:
        """Prompt tokens still to be computed."""
        return self.context_tokens - self.state.num_computed
