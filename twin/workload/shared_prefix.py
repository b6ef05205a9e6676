"""inference-perf's `shared_prefix` load: stages over a fixed population of prompts or users.

Semantics after github.com/kubernetes-sigs/inference-perf, `datagen/shared_prefix_datagen.py`,
`apis/user_session.py`, `loadgen/load_timer.py` and `loadgen/load_generator.py`: a stage sends
int(rate · duration) requests numbered from 0, request i going to prompt or user i mod population;
the next stage starts when all have ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from twin.request import Request
from twin.workload.columns import Floats, length_columns, refuse_too_long
from twin.workload.lengths import Traces, draw_pairs
from twin.workload.sessions import AnswerLimit, Context
from twin.workload.spec import LoadStage, SharedPrefixWorkload
from twin.workload.streams import Stream, generator


@dataclass(frozen=True, slots=True)
class Population:
    """Prompts (cycle) or users (grow), shuffled; list entry i is the i-th in turn.

    Segment ids below `first_free_id` are taken: the groups, then one a question.
    """

    group: list[int]
    question_tokens: list[int]
    output_tokens: list[int]
    num_groups: int
    system_prompt_tokens: int

    def __len__(self) -> int:
        return len(self.group)

    @property
    def first_free_id(self) -> int:
        """Smallest segment id that means nothing yet."""
        return self.num_groups + len(self)

    def opening(self, member: int) -> Context:
        """Return the system prompt of a member."""
        return Context().then(self.group[member], self.system_prompt_tokens)


class _Stages:
    """Due times of each stage; a stage starts one gap after the former has drained."""

    def __init__(self, offsets_s: list[Floats], gap_s: float) -> None:
        self._offsets_s = offsets_s
        self._gap_s = gap_s
        self._next = 0
        self._unfinished = 0
        self.expected_requests = sum(offsets.size for offsets in offsets_s)

    def first(self) -> list[float]:
        """Return due times of the first stage."""
        return self._begin(0.0)

    def after_end(self, end_s: float) -> list[float]:
        """Count one end; return the due times of the next stage if it starts now, else none."""
        self._unfinished -= 1
        if self._unfinished or self._next == len(self._offsets_s):
            return []
        return self._begin(end_s + self._gap_s)

    def _begin(self, start_s: float) -> list[float]:
        offsets_s = self._offsets_s[self._next]
        self._next += 1
        self._unfinished = offsets_s.size
        due_s: list[float] = (offsets_s + start_s).tolist()
        return due_s


class CycleSource:
    """Fixed prompts walked round and round (see `RequestSource`); `turn` counts the stages."""

    warmup_requests = 0
    hears_of_ends = True

    def __init__(self, population: Population, stages: _Stages, limit: AnswerLimit) -> None:
        self._population = population
        self._stages = stages
        self._limit = limit
        self._sent = 0
        self._stage = -1

    def start(self) -> Sequence[Request]:
        """Return the first stage."""
        return self._send(self._stages.first())

    def on_end(self, request: Request, end_s: float, *, rejected: bool) -> Sequence[Request]:  # noqa: ARG002
        """Return the next stage once this one has drained."""
        due_s = self._stages.after_end(end_s)
        return self._send(due_s) if due_s else ()

    @property
    def expected_requests(self) -> int:
        """Requests of all stages."""
        return self._stages.expected_requests

    def _send(self, due_s: list[float]) -> list[Request]:
        population = self._population
        self._stage += 1
        requests = []
        for i, arrival_s in enumerate(due_s):
            member = i % len(population)
            answer = population.output_tokens[member]
            question = population.num_groups + member
            prompt = population.opening(member).then(question, population.question_tokens[member])
            # The same prompt gets a fresh answer each time: answers are sampled.
            asked = prompt.then(population.first_free_id + self._sent, answer)
            max_tokens, stop_after = self._limit.ask(prompt.tokens, answer)
            requests.append(
                Request(
                    self._sent,
                    arrival_s,
                    prompt.tokens,
                    max_tokens,
                    stop_after,
                    content=asked.content(),
                    turn=self._stage,
                )
            )
            self._sent += 1
        return requests


class GrowSource:
    """Users whose context grows without a cap (see `RequestSource`).

    Each user has one request in flight; what falls due meanwhile waits at the client and is sent
    when that ends. A rejected request leaves the context as it was, so a user whose context has
    outgrown the server goes on being rejected.
    """

    warmup_requests = 0
    hears_of_ends = True

    def __init__(self, population: Population, stages: _Stages, limit: AnswerLimit) -> None:
        self._population = population
        self._stages = stages
        self._limit = limit
        self._sent = 0
        self._next_id = population.first_free_id
        size = len(population)
        self._context = [population.opening(user) for user in range(size)]
        self._asked = list(self._context)
        self._turn = [0] * size
        self._waiting: list[list[float]] = [[] for _ in range(size)]

    def start(self) -> Sequence[Request]:
        """Return each user's first request of the first stage."""
        return self._begin(self._stages.first())

    def on_end(self, request: Request, end_s: float, *, rejected: bool) -> Sequence[Request]:
        """Return the user's next request, or the next stage once this one has drained."""
        user = request.session
        if not rejected:
            self._context[user] = self._asked[user]
        due_s = self._stages.after_end(end_s)
        if due_s:
            return self._begin(due_s)
        if self._waiting[user]:
            return (self._send(user, max(self._waiting[user].pop(), end_s)),)
        return ()

    @property
    def expected_requests(self) -> int:
        """Requests of all stages."""
        return self._stages.expected_requests

    def _begin(self, due_s: list[float]) -> list[Request]:
        size = len(self._population)
        users = range(min(size, len(due_s)))
        for user in users:
            self._waiting[user] = due_s[user::size][::-1]  # the earliest last, to pop it
        return [self._send(user, self._waiting[user].pop()) for user in users]

    def _send(self, user: int, arrival_s: float) -> Request:
        population = self._population
        answer = population.output_tokens[user]
        prompt = self._context[user].then(self._next_id, population.question_tokens[user])
        self._asked[user] = prompt.then(self._next_id + 1, answer)
        self._next_id += 2
        max_tokens, stop_after = self._limit.ask(prompt.tokens, answer)
        request = Request(
            self._sent,
            arrival_s,
            prompt.tokens,
            max_tokens,
            stop_after,
            content=self._asked[user].content(),
            session=user,
            turn=self._turn[user],
        )
        self._sent += 1
        self._turn[user] += 1
        return request


def share_prefixes(
    spec: SharedPrefixWorkload, traces: Traces, seed: np.random.SeedSequence, max_model_len: int
) -> CycleSource | GrowSource:
    """Return the load of a spec.

    Raises:
        InputError: a first prompt is too long and the spec makes that an error.
    """
    size = spec.num_groups * spec.prompts_per_group
    question, output = draw_pairs(
        (spec.question_tokens, spec.output_tokens),
        size,
        (generator(seed, Stream.PROMPTS), generator(seed, Stream.OUTPUTS)),
        traces,
    )
    if spec.too_long == "error":
        first = question + spec.system_prompt_tokens
        opening = length_columns(first, output, spec.finish, max_model_len)
        refuse_too_long(opening, max_model_len, "workload.question_tokens")
    order = generator(seed, Stream.SESSIONS).permutation(size)
    population = Population(
        group=(order // spec.prompts_per_group).tolist(),
        question_tokens=question[order].tolist(),
        output_tokens=output[order].tolist(),
        num_groups=spec.num_groups,
        system_prompt_tokens=spec.system_prompt_tokens,
    )
    rng = generator(seed, Stream.ARRIVALS)
    offsets_s = [_offsets(stage, spec.arrivals, rng) for stage in spec.stages]
    stages = _Stages(offsets_s, spec.stage_gap_s)
    limit = AnswerLimit(spec.finish, max_model_len)
    source = CycleSource if spec.behaviour == "cycle" else GrowSource
    return source(population, stages, limit)


def _offsets(stage: LoadStage, arrivals: str, rng: np.random.Generator) -> Floats:
    """Return due times within a stage, shape (int(rate · duration),)."""
    count = stage.num_requests
    if arrivals == "constant":
        return np.arange(1, count + 1) / stage.rate
    if arrivals == "exponential":
        return _rescaled(count, stage.duration_s, rng)
    return _poisson_seconds(stage.rate, count, rng)


def _rescaled(count: int, duration_s: float, rng: np.random.Generator) -> Floats:
    """Return exponential gaps summed up, the last arrival exactly at `duration_s`."""
    times_s = np.cumsum(rng.exponential(size=count))
    return np.asarray(times_s * (duration_s / times_s[-1]), dtype=np.float64)


def _poisson_seconds(rate: float, count: int, rng: np.random.Generator) -> Floats:
    """Return `count` arrivals, a Poisson number in each second, the last of each at its end."""
    parts, second, left = list[Floats](), 0, count
    # A second without any arrival is as likely as exp(-rate); far below one a second most are.
    while left:
        number = int(rng.poisson(rate))
        if number:
            parts.append(second + _rescaled(number, 1.0, rng)[:left])
            left -= parts[-1].size
        second += 1
    return np.concatenate(parts)
