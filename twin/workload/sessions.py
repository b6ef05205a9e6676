"""Conversations whose context grows turn by turn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twin.errors import InputError
from twin.request import Request, SegmentContent
from twin.workload.arrivals import arrival_times
from twin.workload.closed_loop import think_times
from twin.workload.columns import Ints, length_columns, refuse_too_long
from twin.workload.lengths import Traces, draw, draw_pairs
from twin.workload.limits import MAX_REQUESTS, MAX_TURNS
from twin.workload.spec import AfterAnswer, SessionWorkload
from twin.workload.streams import Stream, generator
from twin.workload.trace import Finish


@dataclass(frozen=True, slots=True)
class Context:
    """Tokens of a conversation so far, as chained segments (see `SegmentContent`)."""

    ids: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        """Length."""
        return self.ends[-1] if self.ends else 0

    def then(self, segment: int, tokens: int) -> "Context":
        """Return this context with `tokens` more tokens of a new segment; none leave it as is."""
        if tokens == 0:
            return self
        return Context((*self.ids, segment), (*self.ends, self.tokens + tokens))

    def content(self) -> SegmentContent:
        """Return it as the content of a request."""
        return SegmentContent(self.ids, self.ends)


@dataclass(frozen=True, slots=True)
class AnswerLimit:
    """How a client asks for an answer of a known length within a context limit."""

    finish: Finish
    max_model_len: int

    def ask(self, prompt_tokens: int, output_tokens: int) -> tuple[int, int | None]:
        """Return (max_tokens, stop_after_tokens); see `columns.length_columns`."""
        if self.finish == "length":
            return output_tokens, None
        return max(self.max_model_len - prompt_tokens, 1), output_tokens

    def fits(self, prompt_tokens: int, output_tokens: int) -> bool:
        """Whether prompt and whole answer fit into the context."""
        return prompt_tokens + output_tokens <= self.max_model_len


@dataclass(slots=True)
class _Talk:
    """Where a session stands: its next turn, when that falls due, and its context."""

    next_turn: int
    due_s: float
    context: Context
    asked: Context


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """All that chance decides about the sessions, drawn beforehand.

    `first[s]` is the number of session s's first turn in the per-turn lists; it has the turns
    up to `first[s + 1]`. `pause_s[t]` passes between turn t and the turn after it.
    """

    start_s: list[float]
    group: list[int]
    first: list[int]
    message_tokens: list[int]
    answer_tokens: list[int]
    pause_s: list[float]
    num_groups: int
    system_prompt_tokens: int


class SessionSource:
    """Sends a session's next turn when the last one ended (see `RequestSource`).

    With `by_clock` a turn falls due one pause after the last one fell due, else one pause after
    the last one ended; either way it waits for that end, since it quotes the answer.
    """

    warmup_requests = 0
    hears_of_ends = True

    def __init__(self, plan: SessionPlan, limit: AnswerLimit, *, by_clock: bool) -> None:
        self._plan = plan
        self._limit = limit
        self._by_clock = by_clock
        self._sent = 0
        self._talks = [
            _Talk(first, start_s, self._fresh(group), Context())
            for first, start_s, group in zip(plan.first, plan.start_s, plan.group, strict=False)
        ]

    def start(self) -> Sequence[Request]:
        """Return the first turn of every session."""
        return [self._send(session, talk.due_s) for session, talk in enumerate(self._talks)]

    def on_end(self, request: Request, end_s: float, *, rejected: bool) -> Sequence[Request]:
        """Return the session's next turn, if it has one."""
        plan, talk = self._plan, self._talks[request.session]
        if not rejected:
            talk.context = talk.asked
        if talk.next_turn == plan.first[request.session + 1]:
            talk.context = talk.asked = Context()
            return ()
        pause_s = plan.pause_s[talk.next_turn - 1]
        talk.due_s = (talk.due_s if self._by_clock else end_s) + pause_s
        return (self._send(request.session, max(talk.due_s, end_s)),)

    @property
    def expected_requests(self) -> int:
        """Number of turns."""
        return self._plan.first[-1]

    def _send(self, session: int, arrival_s: float) -> Request:
        plan, talk = self._plan, self._talks[session]
        turn = talk.next_turn
        talk.next_turn += 1
        message, answer = plan.message_tokens[turn], plan.answer_tokens[turn]
        # Ids of turn t follow from t alone: they do not depend on which session ends first.
        segment = plan.num_groups + 2 * turn
        if not self._limit.fits(talk.context.tokens + message, answer):
            talk.context = self._fresh(plan.group[session])
        prompt = talk.context.then(segment, message)
        talk.asked = prompt.then(segment + 1, answer)
        max_tokens, stop_after = self._limit.ask(prompt.tokens, answer)
        index = self._sent
        self._sent += 1
        return Request(
            index,
            arrival_s,
            prompt.tokens,
            max_tokens,
            stop_after,
            content=talk.asked.content(),
            session=session,
            turn=turn - plan.first[session],
        )

    def _fresh(self, group: int) -> Context:
        return Context().then(group, self._plan.system_prompt_tokens)


def converse(
    spec: SessionWorkload, traces: Traces, seed: np.random.SeedSequence, max_model_len: int
) -> SessionSource:
    """Return the sessions of a spec.

    Raises:
        InputError: no session starts, there are too many turns, or a message does not fit
            even a fresh conversation and the spec makes that an error.
    """
    start_s = arrival_times(
        spec.arrivals, spec.num_sessions, spec.duration_s, generator(seed, Stream.ARRIVALS)
    )
    rng = generator(seed, Stream.SESSIONS)
    group = rng.integers(spec.num_groups, size=start_s.size)
    turns = np.minimum(draw(spec.turns, start_s.size, rng), MAX_TURNS)
    first = np.concatenate(([0], np.cumsum(turns)))
    count = int(first[-1])
    if count > MAX_REQUESTS:
        raise InputError(
            f"{start_s.size:,} sessions have {count:,} turns",
            where="workload.turns",
            remedy=f"at most {MAX_REQUESTS:,} requests in all",
        )
    message, answer = draw_pairs(
        (spec.message_tokens, spec.answer_tokens),
        count,
        (generator(seed, Stream.PROMPTS), generator(seed, Stream.OUTPUTS)),
        traces,
    )
    if spec.too_long == "error":
        fresh: Ints = message + spec.system_prompt_tokens
        opening = length_columns(fresh, answer, spec.finish, max_model_len)
        refuse_too_long(opening, max_model_len, "workload.message_tokens")
    after = spec.next_turn
    kind, mean_s = (
        (after.think, after.think_time_s)
        if isinstance(after, AfterAnswer)
        else (after.interval, after.interval_s)
    )
    plan = SessionPlan(
        start_s=start_s.tolist(),
        group=group.tolist(),
        first=first.tolist(),
        message_tokens=message.tolist(),
        answer_tokens=answer.tolist(),
        pause_s=think_times(kind, mean_s, count, generator(seed, Stream.THINKING)).tolist(),
        num_groups=spec.num_groups,
        system_prompt_tokens=spec.system_prompt_tokens,
    )
    limit = AnswerLimit(spec.finish, max_model_len)
    return SessionSource(plan, limit, by_clock=not isinstance(after, AfterAnswer))
