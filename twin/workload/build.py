"""From a workload's description to its requests: files first, then chance."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pydantic import BaseModel

from twin.workload.closed_loop import close_loop
from twin.workload.lengths import EmpiricalLength, Traces
from twin.workload.open_loop import replay, synthesise
from twin.workload.readers import read_trace
from twin.workload.sessions import converse
from twin.workload.shared_prefix import share_prefixes
from twin.workload.source import RequestSource
from twin.workload.spec import (
    ClosedLoopWorkload,
    SessionWorkload,
    SyntheticWorkload,
    TraceWorkload,
    WorkloadSpec,
)
from twin.workload.trace import Finish, Trace

NO_TIMES = "the trace has no times: all requests arrive at 0; set arrivals to spread them"


@dataclass(frozen=True, slots=True)
class LoadedWorkload:
    """A workload with every file it names read: from here on nothing touches the disk.

    Attributes:
        spec: the description.
        traces: the files, by (path, format) as written in `spec`; a replayed one is cut to its
            window.
    """

    spec: WorkloadSpec
    traces: Traces = field(default_factory=dict)

    def source(self, seed: np.random.SeedSequence, max_model_len: int) -> RequestSource:
        """Return the requests; equal arguments give equal requests, and `seed` stays as it is.

        Args:
            seed: root of the workload's random streams, one a purpose.
            max_model_len: longest context the server takes, tokens.

        Raises:
            InputError: nothing arrives, or a prompt is too long and `too_long` is `error`.
        """
        with _collector_paused():
            return self._source(seed, max_model_len)

    def _source(self, seed: np.random.SeedSequence, max_model_len: int) -> RequestSource:
        spec, traces = self.spec, self.traces
        if isinstance(spec, TraceWorkload):
            return replay(spec, traces[spec.path, spec.format], seed, max_model_len)
        if isinstance(spec, SyntheticWorkload):
            return synthesise(spec, traces, seed, max_model_len)
        if isinstance(spec, ClosedLoopWorkload):
            return close_loop(spec, traces, seed, max_model_len)
        if isinstance(spec, SessionWorkload):
            return converse(spec, traces, seed, max_model_len)
        return share_prefixes(spec, traces, seed, max_model_len)

    @property
    def warmup_requests(self) -> int:
        """The first so many requests, by index, are to be left out of reports."""
        return self.spec.warmup_requests if isinstance(self.spec, ClosedLoopWorkload) else 0

    @property
    def finish(self) -> Finish:
        """How answers end: by a stop token nobody foresees, or by max_tokens."""
        spec = self.spec
        if isinstance(spec, TraceWorkload):
            return spec.finish or self.traces[spec.path, spec.format].finish
        return spec.finish

    @property
    def notes(self) -> tuple[str, ...]:
        """Caveats the files carry into the run, one sentence each."""
        notes = dict.fromkeys(note for trace in self.traces.values() for note in trace.notes)
        if isinstance(self.spec, TraceWorkload) and self.spec.arrivals is None:
            untimed = not self.traces[self.spec.path, self.spec.format].timed
            if untimed:
                notes[NO_TIMES] = None
        return tuple(notes)


def load_traces(spec: WorkloadSpec, base_dir: str | Path) -> LoadedWorkload:
    """Read the files a workload names.

    Args:
        spec: the description.
        base_dir: folder from which relative paths count.

    Raises:
        InputError: a file cannot be used, or no request lies within the window.
    """
    traces: dict[tuple[str, str | None], Trace] = {}
    base = Path(base_dir)
    if isinstance(spec, TraceWorkload):
        trace = read_trace(base / spec.path, spec.format, sort=spec.sort)
        if spec.window_s is not None:
            trace = trace.window(*spec.window_s)
        return LoadedWorkload(spec, {(spec.path, spec.format): trace})
    for length in _empirical(spec):
        key = (length.path, length.format)
        if key not in traces:
            # Only lengths are used, so the order of the rows does not matter.
            traces[key] = read_trace(base / length.path, length.format, sort=True)
    return LoadedWorkload(spec, traces)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Spare the cyclic garbage collector a million new requests, none of them garbage.

    It doubles the time they take to make.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _empirical(spec: BaseModel) -> Iterator[EmpiricalLength]:
    for name in type(spec).model_fields:
        value = getattr(spec, name)
        if isinstance(value, EmpiricalLength):
            yield value


__all__ = ["LoadedWorkload", "load_traces"]
