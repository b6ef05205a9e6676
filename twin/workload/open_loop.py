"""Requests whose arrival depends on nothing: replayed traces and synthetic loads."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from twin.request import Request, SegmentContent
from twin.workload.arrivals import arrival_times
from twin.workload.columns import Ints, length_columns, make_requests, refuse_too_long
from twin.workload.lengths import Traces, draw_pairs
from twin.workload.spec import PrefixGroups, SyntheticWorkload, TraceWorkload
from twin.workload.streams import Stream, generator
from twin.workload.trace import Trace


class OpenLoopSource:
    """All requests are known from the start (see `twin.workload.source.RequestSource`)."""

    warmup_requests = 0
    hears_of_ends = False

    def __init__(self, requests: Sequence[Request]) -> None:
        self._requests = requests

    def start(self) -> Sequence[Request]:
        """Return every request, in order of arrival."""
        return self._requests

    def on_end(self, request: Request, end_s: float, *, rejected: bool) -> Sequence[Request]:  # noqa: ARG002
        """Nothing follows from an end."""
        return ()

    @property
    def expected_requests(self) -> int:
        """Number of requests."""
        return len(self._requests)


def replay(
    spec: TraceWorkload, trace: Trace, seed: np.random.SeedSequence, max_model_len: int
) -> OpenLoopSource:
    """Return the requests of a trace, sampled, cut and rescaled as the spec says.

    Raises:
        InputError: a prompt is too long and the spec makes that an error.
    """
    trace = chosen(spec, trace, seed)
    lengths = length_columns(
        trace.prompt_tokens, trace.output_tokens, spec.finish or trace.finish, max_model_len
    )
    if spec.too_long == "error":
        refuse_too_long(lengths, max_model_len, trace.path, trace.rows)
    contents = None
    if trace.segments is not None:
        contents = trace.segments.contents(trace.prompt_tokens, trace.output_tokens)
    return OpenLoopSource(
        make_requests(
            trace.arrival_s / spec.rate_scale,
            lengths,
            contents=contents,
            priority=trace.priority,
            names=trace.names,
            session=trace.session,
            turn=trace.turn,
            tenant=trace.tenant,
        )
    )


def chosen(spec: TraceWorkload, trace: Trace, seed: np.random.SeedSequence) -> Trace:
    """Return the rows of a trace that are sent, at the times of the file or of `arrivals`."""
    count = len(trace)
    if spec.sample < 1:
        kept = max(1, round(spec.sample * count))
        order = generator(seed, Stream.SAMPLING).permutation(count)
        trace = trace.take(np.sort(order[:kept]).astype(np.int64))
    if spec.max_requests is not None and spec.max_requests < len(trace):
        trace = trace.take(np.arange(spec.max_requests))
    if spec.arrivals is not None:
        rng = generator(seed, Stream.ARRIVALS)
        times_s = arrival_times(spec.arrivals, len(trace), None, rng)
        trace = trace.take(np.arange(times_s.size))
        trace = replace(trace, arrival_s=times_s)
    return trace


def synthesise(
    spec: SyntheticWorkload, traces: Traces, seed: np.random.SeedSequence, max_model_len: int
) -> OpenLoopSource:
    """Return independent requests drawn as the spec says.

    Raises:
        InputError: nothing arrives, or a prompt is too long and the spec makes that an error.
    """
    arrival_s = arrival_times(
        spec.arrivals, spec.num_requests, spec.duration_s, generator(seed, Stream.ARRIVALS)
    )
    count = arrival_s.size
    prompt, output = draw_pairs(
        (spec.prompt_tokens, spec.output_tokens),
        count,
        (generator(seed, Stream.PROMPTS), generator(seed, Stream.OUTPUTS)),
        traces,
    )
    contents = None
    if spec.prefixes is not None:
        prompt = prompt + spec.prefixes.prefix_tokens
        contents = _prefixed(spec.prefixes, prompt, output, generator(seed, Stream.PREFIXES))
    lengths = length_columns(prompt, output, spec.finish, max_model_len)
    if spec.too_long == "error":
        refuse_too_long(lengths, max_model_len, "workload.prompt_tokens")
    return OpenLoopSource(
        make_requests(
            arrival_s,
            lengths,
            contents=contents,
            priority=_priorities(spec, count, generator(seed, Stream.PRIORITIES)),
        )
    )


def _prefixed(
    groups: PrefixGroups, prompt: Ints, output: Ints, rng: np.random.Generator
) -> list[SegmentContent]:
    """Return contents of a shared prefix and then something of the request's own."""
    prefixes = rng.integers(groups.num_prefixes, size=prompt.size).tolist()
    own = range(groups.num_prefixes, groups.num_prefixes + prompt.size)
    totals = (prompt + output).tolist()
    return [
        SegmentContent((prefix, tail), (groups.prefix_tokens, total))
        for prefix, tail, total in zip(prefixes, own, totals, strict=True)
    ]


def _priorities(spec: SyntheticWorkload, count: int, rng: np.random.Generator) -> Ints | None:
    if spec.priorities is None:
        return None
    levels = sorted(spec.priorities)
    weights = np.array([spec.priorities[level] for level in levels])
    return rng.choice(np.array(levels, dtype=np.int64), size=count, p=weights / weights.sum())
