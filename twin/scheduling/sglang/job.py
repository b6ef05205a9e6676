"""`Job`: a request as SGLang's scheduler keeps it."""

from collections.abc import Hashable, Sequence

from twin.request import Request, RequestState
from twin.scheduling.sglang.limits import SglangLimits
from twin.scheduling.sglang.tree_node import TreeNode

# Content keys are not negative, so keys that no other request shares are negative; a request has
# fewer than 2**24 keys (see `twin.request`).
_INDEX_BITS = 24


class Job:
    """Where one request stands; lengths are tokens.

    Its allocated KV length is `state.num_computed`, its known outputs are `state.num_output`.

    Attributes:
        state: the progress that others see.
        prompt: length of the prompt.
        max_new: limit on outputs, as clipped on intake.
        ignore_eos: it runs to `max_new`, and the scheduler knows.
        priority: the larger is the more urgent; SGLang's own number under the eviction policy.
        urgency: priority in the order of the queue (the larger first).
        keys: keys of prompt and answer for the prefix tree; empty without it.
        queued: when it last joined the queue, a running number.
        arrival_work: `SglangCore.work_tokens` when it joined.
        prefix: tokens that were in KV when its last prefill was decided.
        matched: tokens of the last match while waiting, at most all but the last token.
        extend_end: end of its last prefill.
        fill: known tokens when its token ids were last put together.
        protected: tokens of its own path that the tree owns, whole keys.
        counted: tokens whose tree nodes have counted it as a hit.
        node: end of the last match.
        lock: the tree node it holds; None: none.
        holds_row: it has a row of the request table (and maybe KV).
        middle_chunks: launched prefills of it whose result brings no token.
        retracted: it lost its KV and has not been launched since.
        finished: it has ended.
    """

    __slots__ = (
        "arrival_work",
        "counted",
        "extend_end",
        "fill",
        "finished",
        "holds_row",
        "ignore_eos",
        "keys",
        "lock",
        "matched",
        "max_new",
        "middle_chunks",
        "node",
        "prefix",
        "priority",
        "prompt",
        "protected",
        "queued",
        "retracted",
        "state",
        "urgency",
    )

    def __init__(self, state: RequestState, limits: SglangLimits) -> None:
        request = state.request
        self.state = state
        self.prompt = request.prompt_tokens
        self.max_new = limits.max_new_tokens(request)
        self.ignore_eos = request.ignore_eos
        self.priority = limits.raw_priority(request)
        self.urgency = -request.priority
        self.keys: Sequence[Hashable] = ()
        self.queued = 0
        self.arrival_work = 0
        self.prefix = 0
        self.matched = 0
        self.extend_end = 0
        self.fill = 0
        self.protected = 0
        self.counted = 0
        self.node: TreeNode | None = None
        self.lock: TreeNode | None = None
        self.holds_row = False
        self.middle_chunks = 0
        self.retracted = False
        self.finished = False
        most = max(1, self.max_new)
        stop = request.stop_after_tokens
        state.output_limit = most if stop is None else min(most, stop)
        if not limits.disable_radix_cache:
            tokens = self.prompt + state.output_limit
            self.keys = _keys(request, limits.key_tokens, tokens)

    @property
    def known(self) -> int:
        """Prompt and known outputs."""
        return self.prompt + self.state.num_output

    def refresh(self) -> None:
        """Put its known tokens together, as far as they are to be matched or inserted."""
        self.fill = self.prompt + self.state.num_output


def _keys(request: Request, key_tokens: int, tokens: int) -> Sequence[Hashable]:
    """Return a key for each `key_tokens` tokens; without content it can hit only its own.

    Those are a range, which takes no room and is compared at once.
    """
    if request.content is not None:
        return list(request.content.block_keys(key_tokens, tokens))
    first = ~(request.index << _INDEX_BITS)
    return range(first, first - tokens // key_tokens, -1)
